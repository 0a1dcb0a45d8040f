/** Default file names, in search order. A directory with two of them is an error. */
export const CONFIG_FILES: readonly string[] = [
  'redrive.config.yaml',
  'redrive.config.yml',
  'redrive.config.json',
  'redrive.config.ts',
  'redrive.config.js',
]
