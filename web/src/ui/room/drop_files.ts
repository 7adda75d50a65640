//! Files dragged over an element: it learns that they hover, and gets them when they are dropped.

export interface FileTarget {
  hover: (over: boolean) => void;
  files: (files: File[]) => void;
}

export function dropFiles({ hover, files }: FileTarget) {
  return (element: HTMLElement): (() => void) => {
    const stop = new AbortController();
    const { signal } = stop;
    // Entering a child leaves its parent: only the balance tells whether the pointer is still inside.
    let depth = 0;
    const carries = (event: DragEvent) => event.dataTransfer?.types.includes('Files') ?? false;
    const change = (event: DragEvent, by: number) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth = Math.max(0, depth + by);
      hover(depth > 0);
    };
    element.addEventListener('dragenter', (event) => change(event, 1), { signal });
    element.addEventListener('dragleave', (event) => change(event, -1), { signal });
    element.addEventListener('dragover', (event) => change(event, 0), { signal });
    element.addEventListener('drop', (event) => {
      if (!carries(event)) return;
      event.preventDefault();
      depth = 0;
      hover(false);
      files([...(event.dataTransfer?.files ?? [])]);
    }, { signal });
    // Dropped beside it, a file would be opened in place of the page, and everything unsent with it.
    for (const kind of ['dragover', 'drop'] as const) {
      window.addEventListener(kind, (event) => {
        if (carries(event)) event.preventDefault();
      }, { signal });
    }
    return () => stop.abort();
  };
}
