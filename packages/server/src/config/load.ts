import { createPrivateKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { RedriveError } from '@redrive/core'
import { LineCounter, parseDocument } from 'yaml'
import { fillPlaceholders, type Problem, type Surroundings } from './placeholders.ts'
import { problemsOf, refuse } from './problems.ts'
import { type Config, configSchema } from './schema.ts'
import { isLoopback, shownAddress } from './values.ts'

/** In the order they are looked for; two of them at once are refused. */
export const CONFIG_FILES: readonly string[] = [
  'redrive.config.yaml',
  'redrive.config.yml',
  'redrive.config.json',
  'redrive.config.ts',
  'redrive.config.js',
]

export interface LoadOptions {
  /** Name of the file. Default: `REDRIVE_CONFIG`, then a `redrive.config.*` in the working directory. */
  readonly file?: string
  /** Default: of this process. */
  readonly env?: Surroundings['env']
  /** Default: of this process. */
  readonly cwd?: string
}

export interface Loaded {
  /** Absolute. */
  readonly file: string
  readonly config: Config
}

/** Finds, reads, fills and checks the config. Rejects with every problem at once. */
export async function loadConfig(options: LoadOptions = {}): Promise<Loaded> {
  const { env = process.env, cwd = process.cwd() } = options
  const file = findConfig({ ...options, env, cwd })
  return { file, config: readConfig(await rawOf(file), { env, cwd, from: basename(file) }) }
}

/** The same for what is already in hand. */
export function readConfig(
  raw: unknown,
  { from, ...surroundings }: Surroundings & { readonly from: string },
): Config {
  const { value, problems } = fillPlaceholders(raw, surroundings)
  const parsed = configSchema.safeParse(value)
  if (parsed.success) {
    refuse(from, [...problems, ...contradictions(parsed.data)])
    return parsed.data
  }
  const isNew = ({ path }: Problem) => !problems.some((one) => isSame(one.path, path))
  refuse(from, [...problems, ...problemsOf(parsed.error.issues).filter(isNew)])
  throw parsed.error
}

/** What is right by itself, and wrong together. */
function contradictions({ auth, listen, publicUrl, metrics, audit }: Config): readonly Problem[] {
  const problems: Problem[] = []
  if (auth.development !== undefined && !isLoopback(listen)) {
    const text = `with auth.development everybody who can connect may do everything, so it must be a loopback address such as 127.0.0.1:${listen.port}, got ${shownAddress(listen)}. Or say auth.oidc.`
    problems.push({ path: ['listen'], text })
  }
  if (auth.oidc !== undefined && publicUrl === undefined) {
    const text = 'is needed with auth.oidc: the provider sends people back there'
    problems.push({ path: ['publicUrl'], text })
  }
  if (publicUrl !== undefined && !isSafe(new URL(publicUrl))) {
    const text = 'expected https:// unless it is this machine: sessions need it'
    problems.push({ path: ['publicUrl'], text })
  }
  if (metrics.listen !== undefined && shownAddress(metrics.listen) === shownAddress(listen)) {
    const text = 'expected another address than that of listen: nobody is asked who they are there'
    problems.push({ path: ['metrics', 'listen'], text })
  }
  if ((audit.signingKey === undefined) !== (audit.checkpointFile === undefined)) {
    problems.push({ path: ['audit'], text: 'expected signingKey and checkpointFile, or neither' })
  }
  if (audit.signingKey !== undefined && !isSigningKey(audit.signingKey.reveal())) {
    const text = 'expected an Ed25519 private key as PEM: openssl genpkey -algorithm ed25519'
    problems.push({ path: ['audit', 'signingKey'], text })
  }
  return problems
}

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'ed25519'
  } catch {
    // Not a key at all; what it is instead is nobody's business.
    return false
  }
}

const isSafe = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || isLoopback({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: 0 })

const isSame = (one: Problem['path'], other: Problem['path']) =>
  one.length === other.length && one.every((step, at) => step === other[at])

function findConfig({ file, env, cwd }: LoadOptions & Surroundings): string {
  const named = file ?? env['REDRIVE_CONFIG']
  if (named !== undefined && named !== '') {
    const path = resolve(cwd, named)
    if (existsSync(path)) return path
    throw invalid(`There is no config ${path}. Look at --config and REDRIVE_CONFIG.`)
  }
  const found = CONFIG_FILES.map((name) => resolve(cwd, name)).filter((path) => existsSync(path))
  const [only, other] = found
  if (only === undefined) {
    throw invalid(
      `There is no config in ${cwd}: expected one of ${CONFIG_FILES.join(', ')}. Run \`redrive init\` to write one, or name it with --config or REDRIVE_CONFIG.`,
    )
  }
  if (other === undefined) return only
  throw invalid(
    `There are ${found.length} configs in ${cwd}: ${found.map((path) => basename(path)).join(', ')}. Keep one, or name it with --config.`,
  )
}

async function rawOf(file: string): Promise<unknown> {
  const kind = extname(file)
  if (kind === '.ts' || kind === '.js' || kind === '.mjs' || kind === '.mts') return imported(file)
  return parsed(file, await readFile(file, 'utf8'))
}

/** 100 aliases: more is a document that is made to fill the memory. */
const ALIASES_MOST = 100

/** JSON is YAML. A problem is told by its place, and never with the line itself: a password may be in it. */
function parsed(file: string, content: string): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(content, { prettyErrors: false, lineCounter })
  const [first] = document.errors
  if (first === undefined) return document.toJS({ maxAliasCount: ALIASES_MOST })
  const { line, col } = lineCounter.linePos(first.pos[0])
  throw invalid(`${basename(file)} cannot be read: line ${line}, column ${col}: ${first.message}`)
}

/** Node strips the types itself. */
async function imported(file: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
    if (module.default !== undefined) return module.default
  } catch (error) {
    throw invalid(`${basename(file)} cannot be loaded: ${(error as Error).message}`, error)
  }
  throw invalid(`${basename(file)} has no default export: \`export default defineConfig({ … })\`.`)
}

const invalid = (message: string, cause?: unknown) =>
  new RedriveError('POLICY_INVALID', message, cause === undefined ? {} : { cause })
