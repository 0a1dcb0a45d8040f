import { chownSync, existsSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { CommandError, EXIT } from '../exit.ts'

/** The file that marks a folder of `redrive dev`, and keeps what a later start needs. */
const MARKER = 'redrive-dev.json'
/** The marker while it is written. */
export const NEW_MARKER: string = `${MARKER}.new`

/** The use of a folder: the shop, or a queue of the user. Their dead letters must not share a catalog. */
export type Mode =
  | 'shop'
  | {
      /** Host, port and virtual host of the broker. */
      readonly broker: string
      readonly queue: string
    }

export interface Marker {
  readonly redrive: 'dev'
  /** Password of the database. */
  readonly password: string
  /** Databases of the user in which starts of this folder have created tables: host, port and name. */
  readonly databases: readonly string[]
  /** Missing until the first start has found its queue. */
  readonly mode?: Mode | undefined
}

/** A file with this name alone proves nothing: a user may have one. So the content is checked, too. */
const markerSchema: z.ZodType<Marker> = z.object({
  redrive: z.literal('dev'),
  password: z.string().regex(/^[0-9a-f]{16,}$/),
  databases: z.array(z.string()),
  mode: z
    .union([z.literal('shop'), z.object({ broker: z.string(), queue: z.string() })])
    .optional(),
})

/** Returns the marker of a folder, or undefined if it has none. Throws if the content is not that of a marker. */
export function readMarker(folder: string): Marker | undefined {
  const file = join(folder, MARKER)
  if (!existsSync(file)) return undefined
  const { data } = markerSchema.safeParse(parsed(readFileSync(file, 'utf8')))
  if (data !== undefined) return data
  throw new CommandError(
    EXIT.conflict,
    `The file "${file}" is damaged, or redrive dev did not create it. Nothing was changed. Choose another folder with --dir. If redrive dev created "${folder}" and you need none of its data, delete that folder.`,
  )
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema rejects it, and the caller reports it.
    return undefined
  }
}

/** Writes the marker completely or not at all. */
export function writeMarker(folder: string, marker: Marker): void {
  const unfinished = join(folder, NEW_MARKER)
  writeFileSync(unfinished, `${JSON.stringify(marker)}\n`, { mode: 0o600, flush: true })
  // After a start with sudo, the owner of the folder must still be able to read it.
  const { uid, gid } = statSync(folder)
  if (process.getuid?.() === 0) chownSync(unfinished, uid, gid)
  renameSync(unfinished, join(folder, MARKER))
}

/** Changes some values of the marker. */
export function changeMarker(folder: string, change: Partial<Marker>): void {
  const marker = readMarker(folder)
  if (marker !== undefined) writeMarker(folder, { ...marker, ...change })
}
