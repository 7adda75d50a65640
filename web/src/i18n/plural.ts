//! Plural forms by the language's own rules (Unicode CLDR, through Intl.PluralRules).

export interface Forms {
  one: string;
  other: string;
}

const RULES = new Map<string, Intl.PluralRules>();

export function plural(language: string, count: number, forms: Forms): string {
  let rules = RULES.get(language);
  if (!rules) {
    rules = new Intl.PluralRules(language);
    RULES.set(language, rules);
  }
  return rules.select(count) === 'one' ? forms.one : forms.other;
}
