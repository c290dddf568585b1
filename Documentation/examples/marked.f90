! SPDX-License-Identifier: GPL-2.0-only OR MIT
!
! The same as marked.c in Fortran, with one thread.
!
!	gcc -O2 -c -o regions.o -x c include/knc_pmu_regions.h
!	gfortran -O2 -pthread -o marked include/knc_pmu_regions.f90 \
!		Documentation/examples/marked.f90 regions.o
!	knc-metrics --regions -M cpi,tlb ./marked

program marked
  use likwid
  implicit none
  integer, parameter :: pages = 512, page = 512
  integer(kind=8), volatile :: numbers(pages * page)
  integer(kind=8) :: total
  integer :: i, turn

  numbers = 1
  total = 0
  call likwid_markerInit()
  call likwid_markerThreadInit()
  call likwid_markerRegisterRegion("side by side")
  call likwid_markerRegisterRegion("page by page")

  call likwid_markerStartRegion("side by side")
  do i = 1, pages * page
    total = total + numbers(i)
  end do
  call likwid_markerStopRegion("side by side")

  call likwid_markerStartRegion("page by page")
  do turn = 1, 100
    do i = 1, pages * page, page
      total = total + numbers(i)
    end do
  end do
  call likwid_markerStopRegion("page by page")

  call likwid_markerClose()
  print *, total
end program
