/** Returns the steps of a JSON Pointer, or undefined if the text is not one. */
export function pointerSteps(pointer: string): readonly string[] | undefined {
  if (!pointer.startsWith('/')) return undefined
  return pointer
    .slice(1)
    .split('/')
    .map((step) => step.replaceAll('~1', '/').replaceAll('~0', '~'))
}
