//! A text field as tall as its text, up to a part of the window.

const WINDOW_PART_MAX = 0.4;

/** `text` is read so that the height follows it. */
export function fitHeight(text: () => string) {
  return (element: HTMLTextAreaElement): void => {
    void text();
    element.style.height = 'auto';
    const borders = element.offsetHeight - element.clientHeight;
    const height = Math.min(element.scrollHeight + borders, window.innerHeight * WINDOW_PART_MAX);
    element.style.height = `${height}px`;
  };
}
