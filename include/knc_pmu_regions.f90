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
    subroutine c_begin(name, length, spflt) bind(c, name='knc_region_begin_fortran')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: length, spflt
    end subroutine
    subroutine c_end(name, length, spflt) bind(c, name='knc_region_end_fortran')
      import :: c_char, c_int
      character(kind=c_char), intent(in) :: name(*)
      integer(c_int), value :: length, spflt
    end subroutine
    integer(c_int) function c_write() bind(c, name='knc_regions_write')
      import :: c_int
    end function
  end interface

contains

  subroutine knc_region_begin(name)
    character(len=*), intent(in) :: name
    call c_begin(name, len(name, c_int), 0_c_int)
  end subroutine

  subroutine knc_region_end(name)
    character(len=*), intent(in) :: name
    call c_end(name, len(name, c_int), 0_c_int)
  end subroutine

  subroutine knc_region_begin_spflt(name)
    character(len=*), intent(in) :: name
    call c_begin(name, len(name, c_int), 1_c_int)
  end subroutine

  subroutine knc_region_end_spflt(name)
    character(len=*), intent(in) :: name
    call c_end(name, len(name, c_int), 1_c_int)
  end subroutine

  ! exit and the end of the program write the file as well
  subroutine knc_regions_write()
    integer(c_int) :: status
    status = c_write()
  end subroutine
end module

! For a program that is marked for likwid
module likwid
  use knc_pmu_regions, only: likwid_markerStartRegion => knc_region_begin, &
    likwid_markerStopRegion => knc_region_end, likwid_markerClose => knc_regions_write
  implicit none

contains

  ! Processes and threads begin by themselves, and regions when they are started first
  subroutine likwid_markerInit()
  end subroutine

  subroutine likwid_markerThreadInit()
  end subroutine

  subroutine likwid_markerNextGroup()
  end subroutine

  subroutine likwid_markerRegisterRegion(regionTag)
    character(len=*), intent(in) :: regionTag
    if (.false.) print *, regionTag
  end subroutine
end module
