import { readFileSync } from 'node:fs'
import { type PolicyOptions, readPolicyOptions } from '@redrive/core'
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

/** Reads `config.yaml`; one error that says what is wrong, or a configuration that is right. */
export function readConfig(env: Env): Config {
  const file: unknown = parse(readFileSync(new URL('../config.yaml', import.meta.url), 'utf8'))
  const { policy, ...settings } = z.looseObject({}).parse(file)
  const checked = Settings.safeParse(fill(settings, env))
  if (!checked.success) throw new Error(`config.yaml:\n${z.prettifyError(checked.error)}`)
  // The reader of the policy fills the placeholders in it, and checks every field.
  return { ...checked.data, policy: readPolicyOptions(policy, { env }) }
}

const PLACEHOLDER = /\$\{(\w+)(?::-([^}]*))?\}/g

/** After parsing, not before: a password may then hold any character that means something to YAML. */
function fill(value: unknown, env: Env): unknown {
  if (typeof value === 'object' && value !== null) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, fill(one, env)]))
  }
  if (typeof value !== 'string') return value
  return value.replace(PLACEHOLDER, (_, name: string, fallback: string | undefined) => {
    const found = env[name] || fallback
    if (found === undefined) throw new Error(`config.yaml: the environment has no ${name}.`)
    return found
  })
}
