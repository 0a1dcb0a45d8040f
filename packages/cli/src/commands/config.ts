import { basename } from 'node:path'
import { EXIT, type ExitCode } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'
import { print } from '../print.ts'
import { type ConfigOptions, loaded } from '../server/config.ts'
import { counted } from '../text/words.ts'

type Options = CommonOptions & ConfigOptions

/** Says whether the server would start with this config, as far as it can be seen without asking anybody. */
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

/** The config as the server understands it, defaults and all, without its secrets. */
export async function printConfig(io: Io, options: Options): Promise<ExitCode> {
  const { config } = await loaded(io, options)
  const [{ shownConfig }, { stringify }] = await Promise.all([
    import('@redrive/server'),
    import('yaml'),
  ])
  const shown = shownConfig(config)
  print(io, options, { json: shown, human: (page) => page.block(stringify(shown).trimEnd(), '') })
  return EXIT.ok
}

/** The JSON Schema of the config, for editors. */
export async function printConfigSchema(io: Io): Promise<ExitCode> {
  const { configJsonSchema } = await import('@redrive/server')
  io.stdout.write(`${JSON.stringify(configJsonSchema(), undefined, 2)}\n`)
  return EXIT.ok
}
