//! Promises about sentences: words follow their number, and no French line ends before its question mark.

import { describe, expect, it } from 'vitest';

import { ar } from './ar';
import { fr } from './fr';
import { withFrenchSpaces } from './french_spaces';

describe('French', () => {
  it('never_breaks_a_line_before_its_punctuation', () => {
    expect(fr.no_account_yet).toBe('Pas encore de compte\u202f?');
    expect(fr.leave_confirm('Le port')).toBe('Quitter «\u00a0Le port\u00a0»\u202f? Vous ne pourrez revenir que sur invitation.');
    expect(fr.search_help.flat().join()).toContain('\u202f; from:me');
    expect(withFrenchSpaces('à : b ! c')).toBe('à\u00a0: b\u202f! c');
  });
});

describe('Arabic', () => {
  it.each([[1, 'ملف واحد'], [2, 'ملفان'], [3, '3 ملفات'], [11, '11 ملفًا'], [100, '100 ملف'], [0, '0 ملف']])('counts_%i_as_its_grammar_does', (count, said) => {
    expect(ar.file_count(count)).toBe(said);
  });
});
