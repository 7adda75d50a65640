//! Why a file cannot be attached, as its sender reads it.

import type { Preferences } from '../../app/preferences.svelte';
import { fileSize } from '../../i18n/size';
import type { Refusal } from '../../model/upload';

export function refusalWords({ strings, language }: Preferences, refusal: Refusal): string {
  const size = (bytes: number) => fileSize(language, bytes);
  switch (refusal.why) {
    case 'empty':
      return strings.file_empty;
    case 'file_bytes':
      return strings.file_too_large(size(refusal.limit));
    case 'count':
      return strings.file_too_many(refusal.limit);
    case 'user_bytes':
      return strings.file_over_quota(size(refusal.left), size(refusal.limit));
    case 'type':
      return strings.file_type_refused(refusal.type);
    case 'changed':
      return strings.file_changed;
  }
}
