//! How Arabic counts: by the language's own rules (Unicode CLDR, through Intl.PluralRules).

const RULES = new Intl.PluralRules('ar');

export interface ArabicForms {
  one: string;
  two: string;
  few: string;
  other: string;
}

/** Arabic counts in six ways; none and many are said like the others here. */
export function counted(count: number, forms: ArabicForms): string {
  const rule = RULES.select(count);
  return rule === 'one' || rule === 'two' ? forms[rule] : rule === 'few' ? `${count} ${forms.few}` : `${count} ${forms.other}`;
}
