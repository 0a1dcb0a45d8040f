import { readFileSync, statSync } from 'node:fs'
import { homedir } from 'node:os'
import { join, resolve } from 'node:path'
import { CommandError, EXIT } from '../exit.ts'
import type { CommonOptions, Io } from '../io.ts'

/** The server and its token. A secret is never a flag, because other users can see process arguments. */
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
 * Returns the settings of `--profile`, `REDRIVE_URL`, `REDRIVE_PROFILE` or the default profile, in this order.
 * `--profile` ignores tokens of the environment, because they may be for another server.
 */
export function settingsOf(io: Io, { profile }: CommonOptions): Settings {
  if (profile !== undefined) return ofProfile(io, profile)
  const url = io.env.REDRIVE_URL
  if (url) return { url: checkedUrl(url, 'REDRIVE_URL'), token: tokenOfEnv(io) }
  const file = readProfiles(io)
  const name = io.env.REDRIVE_PROFILE || (file?.default as string | undefined)
  if (name !== undefined) return ofProfile(io, name)
  throw new CommandError(
    EXIT.usage,
    `No server is configured. Set REDRIVE_URL and REDRIVE_TOKEN, or add a profile to ${profilesPath(io)} and select it with --profile.`,
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
      `Profile "${name}" does not exist in ${path}. Add it with "url" and "tokenFile".`,
    )
  }
  const { url, token, tokenFile } = profile
  if (typeof url !== 'string') {
    throw new CommandError(EXIT.usage, `Profile "${name}" in ${path} has no "url". Add it.`)
  }
  const checked = checkedUrl(url, `Profile "${name}"`)
  if (typeof token === 'string') {
    refuseReadable(path)
    return { url: checked, token: checkedToken(token, `The token of profile "${name}" in ${path}`) }
  }
  const isFile = typeof tokenFile === 'string'
  return {
    url: checked,
    token: isFile ? readToken(resolve(join(path, '..'), tokenFile)) : undefined,
  }
}

function profilesPath({ env }: Io): string {
  const base = env.XDG_CONFIG_HOME || join(env.HOME || homedir(), '.config')
  return join(base, 'redrive', 'config.json')
}

function readProfiles(io: Io): ProfileFile | undefined {
  const path = profilesPath(io)
  const text = readIfExists(path)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as ProfileFile
  } catch (cause) {
    throw new CommandError(EXIT.usage, `${path} is not valid JSON. Correct or remove it.`, {
      cause,
    })
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function readToken(path: string): string {
  const text = readIfExists(path)?.trim()
  if (text) return checkedToken(text, `The content of the token file ${path}`)
  throw new CommandError(
    EXIT.usage,
    `The token file ${path} does not exist or is empty. Write a token to it, or correct the path in REDRIVE_TOKEN_FILE or in the profile.`,
  )
}

/** Checks that a token can be sent in a header. The error never repeats the value, because it is a secret. */
function checkedToken(text: string, where: string): string {
  const token = text.trim()
  if (/^[\x21-\x7e]+$/.test(token)) return token
  throw new CommandError(
    EXIT.usage,
    `${where} is not a valid token: it contains spaces, line breaks or characters that are not ASCII. Expected only rdv_….`,
  )
}

const GROUP_AND_OTHERS = 0o077

/** Rejects a file that other users can read. They could use the token in it. */
function refuseReadable(path: string): void {
  if (process.platform === 'win32') return
  if ((statSync(path).mode & GROUP_AND_OTHERS) === 0) return
  throw new CommandError(
    EXIT.usage,
    `${path} contains a token, and other users can read it. Run: chmod 600 ${path}`,
  )
}

/** Checks the address of the server. The error never repeats the value, because it may contain a password. */
function checkedUrl(text: string, where: string): string {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol)) {
    throw new CommandError(
      EXIT.usage,
      `${where}: expected an address such as https://redrive.example.com, got ${url === null ? 'a value that is not a URL' : `an address that starts with "${url.protocol}"`}.`,
    )
  }
  if (url.username === '' && url.password === '') return text
  throw new CommandError(
    EXIT.usage,
    `${where}: expected an address without a user name or password. Use a token: REDRIVE_TOKEN, REDRIVE_TOKEN_FILE, or "tokenFile" of a profile.`,
  )
}
