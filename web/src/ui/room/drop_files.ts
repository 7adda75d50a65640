//! Files dragged over an element: it learns that they hover, and gets them when they are dropped.

export interface FileTarget {
  hover: (over: boolean) => void;
  files: (files: File[]) => void;
  /** A folder was among them. */
  folder: () => void;
}

export function dropFiles({ hover, files, folder }: FileTarget) {
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
      const items = [...(event.dataTransfer?.items ?? [])].filter(({ kind }) => kind === 'file');
      // A folder looks like a file without content until one reads it.
      const isFolder = items.map((item) => item.webkitGetAsEntry()?.isDirectory === true);
      const dropped = items.flatMap((item, index) => (isFolder[index] ? [] : (item.getAsFile() ?? [])));
      if (isFolder.includes(true)) folder();
      if (dropped.length > 0) files(dropped);
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
