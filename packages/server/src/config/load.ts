import { createPrivateKey } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { basename, extname, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { RedriveError } from '@redrive/core'
import { LineCounter, parseDocument } from 'yaml'
import { CONFIG_FILES } from './files.ts'
import { fillPlaceholders, type Problem, type Surroundings } from './placeholders.ts'
import { problemsOf, refuse } from './problems.ts'
import { type Config, configSchema } from './schema.ts'
import { tlsProblems } from './tls-problems.ts'
import { isLoopback, shownAddress } from './values.ts'

export interface LoadOptions {
  /** Name of the file. Default: `REDRIVE_CONFIG`, then a `redrive.config.*` in the working directory. */
  readonly file?: string
  /** Environment variables. Default: those of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** Working directory. Default: that of this process. */
  readonly cwd?: string
}

export interface LoadedConfig {
  /** Absolute path. */
  readonly file: string
  readonly config: Config
}

/** Finds, reads and checks the config and replaces its placeholders. Rejects with a list of every problem. */
export async function loadConfig(options: LoadOptions = {}): Promise<LoadedConfig> {
  const { env = process.env, cwd = process.cwd() } = options
  const file = findConfig({ ...options, env, cwd })
  return { file, config: readConfig(await rawOf(file), { env, cwd, from: basename(file) }) }
}

/** Checks a config that is already loaded and replaces its placeholders. Throws a list of every problem. */
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

/** Returns the problems between settings that are each valid alone. */
function contradictions(config: Config): readonly Problem[] {
  const { auth, listen, publicUrl, metrics, audit, approval, allowOwnApproval } = config
  const problems: Problem[] = [...unknownSources(config), ...tlsProblems(config)]
  if (auth.development !== undefined && !isLoopback(listen)) {
    const text = `auth.development gives every client full access, so listen must be a loopback address such as "127.0.0.1:${listen.port}", got "${shownAddress(listen)}". Change listen, or use auth.oidc.`
    problems.push({ path: ['listen'], text })
  }
  if (auth.oidc !== undefined && approval === 'anyone' && !allowOwnApproval) {
    const text =
      'with "anyone", one person can plan and approve a replay alone. Remove it, or confirm it with allowOwnApproval: true'
    problems.push({ path: ['approval'], text })
  }
  if (auth.oidc !== undefined && publicUrl === undefined) {
    const text = 'is required with auth.oidc, because the provider redirects the browser to it'
    problems.push({ path: ['publicUrl'], text })
  }
  if (publicUrl !== undefined && !isSafe(new URL(publicUrl))) {
    const text = 'expected https:// unless the host is this machine: session cookies require it'
    problems.push({ path: ['publicUrl'], text })
  }
  if (metrics.listen !== undefined && shownAddress(metrics.listen) === shownAddress(listen)) {
    const text =
      'expected an address other than listen, because metrics need no authentication there'
    problems.push({ path: ['metrics', 'listen'], text })
  }
  if ((audit.signingKey === undefined) !== (audit.checkpointFile === undefined)) {
    const text = 'expected both signingKey and checkpointFile, or neither'
    problems.push({ path: ['audit'], text })
  }
  if (audit.signingKey !== undefined && !isSigningKey(audit.signingKey.reveal())) {
    const text =
      'expected an Ed25519 private key as PEM. Create one: openssl genpkey -algorithm ed25519'
    problems.push({ path: ['audit', 'signingKey'], text })
  }
  return problems
}

/** A rule for a source that does not exist would never match, and a typing error would stay unnoticed. */
const unknownSources = ({ fingerprints, sources }: Config): readonly Problem[] =>
  fingerprints.flatMap(({ source }, at) =>
    source === undefined || Object.hasOwn(sources, source)
      ? []
      : [{ path: ['fingerprints', at, 'source'], text: `no source has the name "${source}"` }],
  )

function isSigningKey(pem: string): boolean {
  try {
    return createPrivateKey(pem).asymmetricKeyType === 'ed25519'
  } catch {
    // Not a key. The error is dropped, because it could reveal a part of the value.
    return false
  }
}

const isSafe = ({ protocol, hostname }: URL) =>
  protocol === 'https:' || isLoopback({ host: hostname.replace(/^\[(.*)\]$/, '$1'), port: 0 })

const isSame = (one: Problem['path'], other: Problem['path']) =>
  one.length === other.length && one.every((step, at) => step === other[at])

function findConfig({ file, env, cwd }: LoadOptions & Surroundings): string {
  const requested = file ?? env['REDRIVE_CONFIG']
  if (requested !== undefined && requested !== '') {
    const path = resolve(cwd, requested)
    if (existsSync(path)) return path
    throw invalid(`Config file "${path}" does not exist. Check --config and REDRIVE_CONFIG.`)
  }
  const found = CONFIG_FILES.map((name) => resolve(cwd, name)).filter((path) => existsSync(path))
  const [only, other] = found
  if (only === undefined) {
    throw invalid(
      `No config file in "${cwd}": expected one of ${CONFIG_FILES.join(', ')}. Run \`redrive init\` to create one, or set --config or REDRIVE_CONFIG.`,
    )
  }
  if (other === undefined) return only
  throw invalid(
    `Found ${found.length} config files in "${cwd}": ${found.map((path) => basename(path)).join(', ')}. Keep one, or choose one with --config.`,
  )
}

async function rawOf(file: string): Promise<unknown> {
  const kind = extname(file)
  if (kind === '.ts' || kind === '.js' || kind === '.mjs' || kind === '.mts') {
    return importConfig(file)
  }
  return parseConfig(file, await readFile(file, 'utf8'))
}

/** 100 YAML aliases. A document with more is probably built to exhaust the memory. */
const MAX_ALIASES = 100

/**
 * Parses YAML, and JSON, which is a subset of it. An error contains the position and never the line,
 * because the line may contain a password.
 */
function parseConfig(file: string, content: string): unknown {
  const lineCounter = new LineCounter()
  const document = parseDocument(content, { prettyErrors: false, lineCounter })
  const [first] = document.errors
  if (first === undefined) return document.toJS({ maxAliasCount: MAX_ALIASES })
  const { line, col } = lineCounter.linePos(first.pos[0])
  throw invalid(`Cannot parse ${basename(file)} at line ${line}, column ${col}: ${first.message}`)
}

/** Imports a config module. Node strips the types of TypeScript. */
async function importConfig(file: string): Promise<unknown> {
  try {
    const module = (await import(pathToFileURL(file).href)) as { readonly default?: unknown }
    if (module.default !== undefined) return module.default
  } catch (error) {
    throw invalid(`Cannot load ${basename(file)}: ${(error as Error).message}`, error)
  }
  throw invalid(
    `${basename(file)} has no default export. Write \`export default defineConfig({ … })\`.`,
  )
}

const invalid = (message: string, cause?: unknown) =>
  new RedriveError('POLICY_INVALID', message, cause === undefined ? {} : { cause })
