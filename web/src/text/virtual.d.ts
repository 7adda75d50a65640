//! Modules that the build makes (`web/emoji.ts`).

declare module 'virtual:emoji/*' {
  const groups: readonly (readonly (readonly [string, string, string, string, 0 | 1])[])[];
  export default groups;
}
