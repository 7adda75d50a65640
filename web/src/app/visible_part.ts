//! The part of the window that a keyboard of glass leaves: the page is as large as that, so that nothing of it lies under
//! the keyboard. Android makes the page smaller by itself. iOS lays the keyboard over the page, and moves the page up
//! until the field that is written in can be seen: here it is put back.

/** Where less is left, what is not needed while one writes gives way to the messages (`[data-low]`). */
const LOW_PX = 200;

export function followVisiblePart(page: HTMLElement): void {
  const visible = window.visualViewport;
  const follow = () => {
    const whole = document.documentElement.clientHeight;
    // Who looks closer sees a part of the page, too, and moves it by hand.
    const covered = visible !== null && visible.scale === 1 && visible.height < whole - 1;
    page.style.height = covered ? `${visible.height}px` : '';
    page.style.transform = covered && visible.offsetTop > 0 ? `translateY(${visible.offsetTop}px)` : '';
    page.toggleAttribute('data-covered', covered);
    page.toggleAttribute('data-low', (covered ? visible.height : whole) < LOW_PX);
  };
  visible?.addEventListener('resize', follow);
  visible?.addEventListener('scroll', follow);
  window.addEventListener('resize', follow);
  follow();
}
