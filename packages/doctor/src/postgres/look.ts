import type { CheckHit } from '../finding.ts'
import type { PostgresFacts } from './facts.ts'

/** Returns a function that reports a setting of the server with this value. */
export const settingIs =
  (name: string, value: string) =>
  ({ settings }: PostgresFacts): readonly CheckHit[] =>
    settings[name] === value ? [{ subject: name, found: value }] : []
