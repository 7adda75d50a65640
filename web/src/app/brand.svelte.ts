//! How this server shows itself: its name, its logo, its colour. Kept on the device, so that the next visit begins with
//! them.

import type { Keep } from '../net/keep';
import type { Branding } from '../protocol/generated/chat';

const OWN_NAME = 'Folkmoot';
const OWN_LOGO = '/icon.svg';

export class Brand {
  readonly #keep: Keep;
  #shown = $state.raw<Branding>({});

  constructor(keep: Keep) {
    this.#keep = keep;
    this.#shown = keep.branding() ?? {};
    this.#show();
  }

  get name(): string {
    return this.#shown.name ?? OWN_NAME;
  }

  get logo(): string {
    return this.#shown.logo === undefined ? OWN_LOGO : `/api/v1/logo/${this.#shown.logo}`;
  }

  take(branding: Branding): void {
    this.#shown = branding;
    this.#keep.setBranding(branding);
    this.#show();
  }

  /** The page's colours are made of the hue (`tokens.css`). */
  #show(): void {
    const { style, dataset } = document.documentElement;
    const { accent, logo } = this.#shown;
    if (accent === undefined) {
      style.removeProperty('--hue');
      delete dataset['accent'];
    } else {
      style.setProperty('--hue', String(accent));
      dataset['accent'] = 'own';
    }
    const icon = document.querySelector<HTMLLinkElement>('link[rel=icon]');
    if (!icon) return;
    icon.href = this.logo;
    if (logo === undefined) icon.type = 'image/svg+xml';
    else icon.removeAttribute('type');
  }
}
