! SPDX-License-Identifier: GPL-2.0-only OR MIT
!
! Regions with names, for Fortran: what knc_pmu_regions.h is for C, and likwid's module with
! the same. The counting is C's:
!
!	gcc -O2 -c -o regions.o -x c include/knc_pmu_regions.h
!	gfortran -O2 -pthread -o program include/knc_pmu_regions.f90 program.f90 regions.o

module knc_pmu_regions
  use, intrinsic :: iso_c_binding, only: c_char, c_int
  implicit none
  private
  public :: knc_region_begin, knc_region_end, knc_region_begin_spflt, knc_region_end_spflt
  public :: knc_regions_write

  interface
    subroutine c_mark(name, length, begin, spflt) bind(c, name='knc_region_fortran')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: length, begin, spflt
    end subroutine
    integer(c_int) function c_write() bind(c, name='knc_regions_write')
      import :: c_int
    end function
  end interface

contains

  subroutine knc_region_begin(name)
    character(len=*), intent(in) :: name
    call c_mark(name, len(name, c_int), 1_c_int, 0_c_int)
  end subroutine

  subroutine knc_region_end(name)
    character(len=*), intent(in) :: name
    call c_mark(name, len(name, c_int), 0_c_int, 0_c_int)
  end subroutine

  subroutine knc_region_begin_spflt(name)
    character(len=*), intent(in) :: name
    call c_mark(name, len(name, c_int), 1_c_int, 1_c_int)
  end subroutine

  subroutine knc_region_end_spflt(name)
    character(len=*), intent(in) :: name
    call c_mark(name, len(name, c_int), 0_c_int, 1_c_int)
  end subroutine

  ! exit and the end of the program write the file as well
  subroutine knc_regions_write()
    integer(c_int) :: status
    status = c_write()
  end subroutine
end module

! For a program that is marked for likwid
module likwid
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t, c_null_char
  use knc_pmu_regions, only: likwid_markerStartRegion => knc_region_begin, &
    likwid_markerStopRegion => knc_region_end, likwid_markerClose => knc_regions_write
  implicit none
  private :: c_char, c_int, c_int64_t, c_null_char

  interface
    integer(c_int) function knc_region_get(name, counts, ns, calls) bind(c)
      import :: c_char, c_int, c_int64_t
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int64_t), intent(inout) :: counts(2), ns, calls
    end function
    subroutine knc_region_reset(name) bind(c)
      import :: c_char
      character(kind=c_char), intent(in) :: name(*)
    end subroutine
  end interface

contains

  ! Processes and threads begin by themselves, and regions when they are started first
  subroutine likwid_markerInit()
  end subroutine

  subroutine likwid_markerThreadInit()
  end subroutine

  ! There is one set of events in a run
  subroutine likwid_markerNextGroup()
  end subroutine

  subroutine likwid_markerRegisterRegion(regionTag)
    character(len=*), intent(in) :: regionTag
    if (.false.) print *, regionTag
  end subroutine

  ! Of this thread; events has room for nr_events counts, which is 0 if there is nothing
  subroutine likwid_markerGetRegion(regionTag, nr_events, events, time, count)
    character(len=*), intent(in) :: regionTag
    integer, intent(inout) :: nr_events
    double precision, intent(inout) :: events(*)
    double precision, intent(out) :: time
    integer, intent(out) :: count
    integer(c_int64_t) :: counts(2), ns, calls
    integer :: found
    ns = 0
    calls = 0
    found = knc_region_get(trim(regionTag) // c_null_char, counts, ns, calls)
    nr_events = max(0, min(nr_events, found))
    events(1:nr_events) = real(counts(1:nr_events), kind(events))
    time = real(ns, kind(time)) / 1d9
    count = int(calls)
  end subroutine

  subroutine likwid_markerResetRegion(regionTag)
    character(len=*), intent(in) :: regionTag
    call knc_region_reset(trim(regionTag) // c_null_char)
  end subroutine

  ! The name is that which knc-metrics has chosen
  subroutine likwid_markerWriteFile(markerfile)
    character(len=*), intent(in) :: markerfile
    if (.false.) print *, markerfile
    call likwid_markerClose()
  end subroutine
end module
