! SPDX-License-Identifier: GPL-2.0-only OR MIT
!
! Regions with names, for Fortran: what knc_pmu_regions.h is for C, and likwid's module with
! the same. The counting is C's:
!
!	gcc -O2 -c -o regions.o -x c include/knc_pmu_regions.h
!	gfortran -O2 -pthread -o program include/knc_pmu_regions.f90 program.f90 regions.o
!
! A static program with -fopenmp also needs -Wl,-u,pthread_mutex_destroy, with regions or
! without: gfortran's library calls that function at the end, and has not linked it.

module knc_pmu_regions
  use, intrinsic :: iso_c_binding, only: c_char, c_int, c_int64_t
  implicit none
  private
  public :: knc_region_begin, knc_region_end, knc_region_begin_spflt, knc_region_end_spflt
  public :: knc_regions_write, knc_region_get, knc_region_reset

  interface
    subroutine c_mark(name, length, begin, spflt) bind(c, name='knc_region_fortran')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: length, begin, spflt
    end subroutine
    integer(c_int) function c_write() bind(c, name='knc_regions_write')
      import :: c_int
    end function
    ! Of a name that ends with c_null_char
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

! For a program that is marked for likwid, with "use likwid" or without: these are external
! procedures, as likwid's are.
module likwid
  implicit none
  private

  abstract interface
    subroutine plain()
    end subroutine
    subroutine of_region(regionTag)
      character(len=*), intent(in) :: regionTag
    end subroutine
    subroutine of_file(markerfile)
      character(len=*), intent(in) :: markerfile
    end subroutine
    subroutine get_region(regionTag, nr_events, events, time, count)
      character(len=*), intent(in) :: regionTag
      integer, intent(inout) :: nr_events
      double precision, intent(inout) :: events(*)
      double precision, intent(out) :: time
      integer, intent(out) :: count
    end subroutine
  end interface

  procedure(plain), public :: likwid_markerInit, likwid_markerThreadInit, &
    likwid_markerNextGroup, likwid_markerClose
  procedure(of_region), public :: likwid_markerRegisterRegion, likwid_markerStartRegion, &
    likwid_markerStopRegion, likwid_markerResetRegion
  procedure(of_file), public :: likwid_markerWriteFile
  procedure(get_region), public :: likwid_markerGetRegion
end module

! Processes and threads begin by themselves, and regions when they are started first
subroutine likwid_markerInit()
end subroutine

subroutine likwid_markerThreadInit()
end subroutine

! There is one set of events in a run
subroutine likwid_markerNextGroup()
end subroutine

subroutine likwid_markerRegisterRegion(regionTag)
  implicit none
  character(len=*), intent(in) :: regionTag
  if (.false.) print *, regionTag
end subroutine

subroutine likwid_markerStartRegion(regionTag)
  use knc_pmu_regions, only: knc_region_begin
  implicit none
  character(len=*), intent(in) :: regionTag
  call knc_region_begin(regionTag)
end subroutine

subroutine likwid_markerStopRegion(regionTag)
  use knc_pmu_regions, only: knc_region_end
  implicit none
  character(len=*), intent(in) :: regionTag
  call knc_region_end(regionTag)
end subroutine

! Of this thread; events has room for nr_events counts, which is 0 if there is nothing
subroutine likwid_markerGetRegion(regionTag, nr_events, events, time, count)
  use, intrinsic :: iso_c_binding, only: c_int64_t, c_null_char
  use knc_pmu_regions, only: knc_region_get
  implicit none
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
  use, intrinsic :: iso_c_binding, only: c_null_char
  use knc_pmu_regions, only: knc_region_reset
  implicit none
  character(len=*), intent(in) :: regionTag
  call knc_region_reset(trim(regionTag) // c_null_char)
end subroutine

! The name is that which knc-metrics has chosen
subroutine likwid_markerWriteFile(markerfile)
  use knc_pmu_regions, only: knc_regions_write
  implicit none
  character(len=*), intent(in) :: markerfile
  if (.false.) print *, markerfile
  call knc_regions_write()
end subroutine

subroutine likwid_markerClose()
  use knc_pmu_regions, only: knc_regions_write
  implicit none
  call knc_regions_write()
end subroutine
