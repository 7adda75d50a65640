//! A text field as tall as its text, up to a part of the window: by its style (`field-sizing`)
//! where the browser knows that, else by measuring the text after each change.

const WINDOW_PART_MAX = 0.4;
const FITS_BY_ITSELF = CSS.supports('field-sizing', 'content');

/** `text` is read so that the height follows it. */
export function fitHeight(text: () => string) {
  return (element: HTMLTextAreaElement): void => {
    if (FITS_BY_ITSELF) return;
    void text();
    const box = element.parentElement;
    // The height of a text is only known at no height at all. What lies around the field keeps its size meanwhile: a list
    // that became taller for a moment would be scrolled away from its end.
    if (box) box.style.minHeight = `${box.offsetHeight}px`;
    element.style.height = 'auto';
    const borders = element.offsetHeight - element.clientHeight;
    const height = Math.min(element.scrollHeight + borders, window.innerHeight * WINDOW_PART_MAX);
    element.style.height = `${height}px`;
    if (box) box.style.minHeight = '';
  };
}
