//! Whether the server has another client by now than the one that runs here: parts of this one may be gone for good then.

const OWN_SCRIPT = 'script[type="module"][src]';

export async function isOutdated(): Promise<boolean> {
  const own = document.querySelector<HTMLScriptElement>(OWN_SCRIPT)?.getAttribute('src');
  const page = await fetch('/', { cache: 'no-cache', credentials: 'omit' }).then((answer) => (answer.ok ? answer.text() : ''), () => '');
  return typeof own === 'string' && page.includes('/assets/') && !page.includes(own);
}
