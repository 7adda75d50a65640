//! Attaching files as people do: by the button, through the dialog of the browser.

import type { Person } from './person';
import type { NamedFile } from './picture';

export async function attach({ page }: Person, ...files: NamedFile[]): Promise<void> {
  const chooser = page.waitForEvent('filechooser');
  await page.getByRole('button', { name: /^Attach files/ }).click();
  await (await chooser).setFiles(files);
}
