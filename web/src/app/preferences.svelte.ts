//! What a person chose on this device: language, light or dark. "auto" follows the system.

import { directionOf, languageOf, loadStrings, strings, type Language } from '../i18n';
import type { Keep } from '../net/keep';
import { TONES, used } from '../text/emoji';

export const THEMES = ['auto', 'light', 'dark', 'contrast'] as const;
export const DENSITIES = ['comfortable', 'compact'] as const;
export type Density = (typeof DENSITIES)[number];
export type Theme = (typeof THEMES)[number];

function oneOf<T extends string>(values: readonly T[], value: string | undefined): T | undefined {
  return values.find((known) => known === value);
}

export class Preferences {
  readonly #keep: Keep;
  theme = $state<Theme>('auto');
  language = $state<Language>('en');
  density = $state<Density>('comfortable');
  /** Whether the bar of formatting stands over the text field. */
  formatBar = $state(false);
  /** The skin tone of emoji; empty: as they are. */
  tone = $state('');
  recentEmoji = $state.raw<readonly string[]>([]);
  strings = $derived(strings(this.language));

  constructor(keep: Keep) {
    this.#keep = keep;
    this.theme = oneOf(THEMES, keep.preference('theme')) ?? 'auto';
    this.language = languageOf(keep.preference('language'), navigator.languages);
    this.density = oneOf(DENSITIES, keep.preference('density')) ?? 'comfortable';
    this.formatBar = keep.preference('format-bar') === 'shown';
    this.tone = oneOf(TONES, keep.preference('tone')) ?? '';
    this.recentEmoji = keep.preference('recent-emoji')?.split(' ').filter(Boolean) ?? [];
    this.#show();
  }

  setDensity(density: Density): void {
    this.density = density;
    this.#keep.setPreference('density', density === 'comfortable' ? undefined : density);
    this.#show();
  }

  showFormatBar(shown: boolean): void {
    this.formatBar = shown;
    this.#keep.setPreference('format-bar', shown ? 'shown' : undefined);
  }

  setTone(tone: string): void {
    this.tone = tone;
    this.#keep.setPreference('tone', tone === '' ? undefined : tone);
  }

  useEmoji(character: string): void {
    this.recentEmoji = used(this.recentEmoji, character);
    this.#keep.setPreference('recent-emoji', this.recentEmoji.join(' '));
  }

  setTheme(theme: Theme): void {
    this.theme = theme;
    this.#keep.setPreference('theme', theme === 'auto' ? undefined : theme);
    this.#show();
  }

  async setLanguage(language: Language): Promise<void> {
    this.#keep.setPreference('language', language);
    await loadStrings(language);
    this.language = language;
    this.#show();
  }

  #show(): void {
    const root = document.documentElement;
    root.lang = this.language;
    root.dir = directionOf(this.language);
    root.dataset['density'] = this.density;
    if (this.theme === 'auto') delete root.dataset['theme'];
    else root.dataset['theme'] = this.theme;
  }
}
