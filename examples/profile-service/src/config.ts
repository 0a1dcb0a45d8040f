import { readFileSync } from 'node:fs'
import { fillConfig, type PolicyOptions, readPolicyOptions } from '@redrive/core'
import { parse } from 'yaml'
import { z } from 'zod'

type Env = Readonly<Record<string, string | undefined>>

/** Strict: a misspelt name must not mean the default. */
const Settings = z.strictObject({
  rabbitmq: z.strictObject({ url: z.string(), queue: z.string() }),
  postgres: z.strictObject({ url: z.string() }),
  http: z.strictObject({ port: z.coerce.number().int().min(0).max(65_535) }),
})

export interface Config extends z.infer<typeof Settings> {
  readonly policy: PolicyOptions
}

/** Reads `config.yaml`; returns a valid configuration or throws one error that lists all problems. */
export function readConfig(env: Env): Config {
  const file: unknown = parse(readFileSync(new URL('../config.yaml', import.meta.url), 'utf8'))
  // After parsing, so that a password may contain any character that has a meaning in YAML.
  const { policy, ...settings } = z.looseObject({}).parse(fillConfig(file, env))
  const checked = Settings.safeParse(settings)
  if (!checked.success) throw new Error(`config.yaml:\n${z.prettifyError(checked.error)}`)
  return { ...checked.data, policy: readPolicyOptions(policy) }
}
