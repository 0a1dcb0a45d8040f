import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

/** Which server, and as whom. Secrets are never flags: others see the arguments of a process. */
export interface Settings {
  readonly url: string
  readonly token: string | undefined
}

interface Profile {
  readonly url?: unknown
  readonly token?: unknown
  readonly tokenFile?: unknown
}

interface ProfileFile {
  readonly default?: unknown
  readonly profiles?: Readonly<Record<string, Profile>>
}

/**
 * `--profile` alone decides when it is there: a token of the environment never goes to a server that it
 * was not meant for. Else `REDRIVE_URL`, else `REDRIVE_PROFILE`, else the default of the file.
 */
export function settingsOf(io: Io, { profile }: CommonOptions): Settings {
  if (profile !== undefined) return ofProfile(io, profile)
  const url = io.env['REDRIVE_URL']
  if (url) return { url: checkedUrl(url, 'REDRIVE_URL'), token: tokenOfEnv(io) }
  const file = readProfiles(io)
  const name = io.env['REDRIVE_PROFILE'] || (file?.default as string | undefined)
  if (name !== undefined) return ofProfile(io, name)
  throw new CommandError(
    EXIT.usage,
    `Which server? Set REDRIVE_URL and REDRIVE_TOKEN, or write a profile to ${profilesPath(io)} and name it with --profile.`,
  )
}

function tokenOfEnv(io: Io): string | undefined {
  const { REDRIVE_TOKEN: token, REDRIVE_TOKEN_FILE: path } = io.env
  if (token) return checkedToken(token, 'REDRIVE_TOKEN')
  return path ? readToken(resolve(io.cwd, path)) : undefined
}

function ofProfile(io: Io, name: string): Settings {
  const path = profilesPath(io)
  const profile = readProfiles(io)?.profiles?.[name]
  if (profile === undefined) {
    throw new CommandError(
      EXIT.usage,
      `There is no profile ${name} in ${path}. Add one with a url and a tokenFile.`,
    )
  }
  const { url, token, tokenFile } = profile
  if (typeof url !== 'string') {
    throw new CommandError(EXIT.usage, `Profile ${name} in ${path} has no url.`)
  }
  const checked = checkedUrl(url, `profile ${name}`)
  if (typeof token === 'string') {
    refuseReadable(path)
    return { url: checked, token: checkedToken(token, `The token of profile ${name} in ${path}`) }
  }
  const isFile = typeof tokenFile === 'string'
  return {
    url: checked,
    token: isFile ? readToken(resolve(join(path, '..'), tokenFile)) : undefined,
  }
}

function profilesPath({ env }: Io): string {
  const base = env['XDG_CONFIG_HOME'] || join(env['HOME'] || homedir(), '.config')
  return join(base, 'redrive', 'config.json')
}

function readProfiles(io: Io): ProfileFile | undefined {
  const path = profilesPath(io)
  const text = readIfThere(path)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as ProfileFile
  } catch (cause) {
    throw new CommandError(EXIT.usage, `${path} is not JSON. Correct it or remove it.`, { cause })
  }
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readToken(path: string): string {
  const text = readIfThere(path)?.trim()
  if (text) return checkedToken(text, `The file of the token, ${path},`)
  throw new CommandError(EXIT.usage, `The file of the token, ${path}, is not there or empty.`)
}

/** What a header may have in it. Never repeats what it was given: it is a secret, or a part of one. */
function checkedToken(text: string, where: string): string {
  const token = text.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new CommandError(
    EXIT.usage,
    `${where} is not one token: it has blanks, line ends or letters in it that no token has. Expected rdv_… and nothing else.`,
  )
}

const GROUP_AND_OTHERS = 0o077

/** Who can read the file can do what its owner may. */
function refuseReadable(path: string): void {
  if (process.platform === 'win32') return
  if ((statSync(path).mode & GROUP_AND_OTHERS) === 0) return
  throw new CommandError(
    EXIT.usage,
    `${path} has a token in it, and others can read it. Run: chmod 600 ${path}`,
  )
}

/** Never repeats what it was given: an address of something else may have a password in it. */
function checkedUrl(text: string, where: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CommandError(
      EXIT.usage,
      `${where}: expected an address such as https://redrive.example.com, got ${url === null ? 'something else' : `one that begins with ${url.protocol}`}`,
    )
  }
  if (url.username === '' && url.password === '') return text
  throw new CommandError(
    EXIT.usage,
    `${where}: expected an address without a name or password. Who asks is said by a token: REDRIVE_TOKEN or REDRIVE_TOKEN_FILE, or the tokenFile of a profile.`,
  )
}
