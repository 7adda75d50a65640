//! How Arabic counts: by the language's own rules (Unicode CLDR, through Intl.PluralRules).

const RULES = new Intl.PluralRules('ar');

export interface ArabicForms {
  one: string;
  two: string;
  /** 3 to 10. */
  few: string;
  /** 11 to 99, where it is written otherwise than after a hundred. */
  many?: string;
  /** None, and whole hundreds. */
  other: string;
}

export function counted(count: number, forms: ArabicForms): string {
  const rule = RULES.select(count);
  if (rule === 'one' || rule === 'two') return forms[rule];
  if (rule === 'few') return `${count} ${forms.few}`;
  return `${count} ${rule === 'many' ? (forms.many ?? forms.other) : forms.other}`;
}
