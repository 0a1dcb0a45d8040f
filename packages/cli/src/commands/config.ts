import { basename } from 'node:path'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'
import { counted } from '../text/format.ts'

type Options = CommonOptions & ConfigOptions

/** Checks a config without starting the server. Does not connect to brokers or the database. */
export async function validateConfig(io: Io, options: Options): Promise<ExitCode> {
  const { config, file } = await loaded(io, options)
  const sources = Object.keys(config.sources)
  print(io, options, {
    json: { file, isValid: true, sources },
    human: (page) =>
      page.line`${basename(file)} is valid: ${counted(sources.length, 'source')}${sources.length === 0 ? '' : `, ${sources.join(', ')}`}.`,
  })
  return EXIT.ok
}

/** Prints the config with defaults and without secrets. */
export async function printConfig(io: Io, options: Options): Promise<ExitCode> {
  const { config } = await loaded(io, options)
  const [{ redactConfig }, { stringify }] = await Promise.all([
    import('@redrive/server/internal'),
    import('yaml'),
  ])
  const shown = redactConfig(config)
  print(io, options, { json: shown, human: (page) => page.block(stringify(shown).trimEnd(), '') })
  return EXIT.ok
}

/** Prints the JSON Schema of the config, for editors. */
export async function printConfigSchema(io: Io): Promise<ExitCode> {
  const { configJsonSchema } = await import('@redrive/server/internal')
  io.stdout.write(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`)
  return EXIT.ok
}
