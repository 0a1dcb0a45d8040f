import { CommandError, EXIT } from '../exit.ts'
import { changeMarker, type Mode, readMarker } from './marker.ts'

/** Rejects a start whose dead letters would be in the catalog of another mode. */
export function expectMode(folder: string, wanted: Mode): void {
  const mode = readMarker(folder)?.mode
  if (mode === undefined || shown(mode) === shown(wanted)) return
  throw new CommandError(
    EXIT.conflict,
    `The folder "${folder}" has the data of ${shown(mode)}, and this start is for ${shown(wanted)}. Nothing was changed. Choose another folder with --dir, or start in the same way as before.`,
  )
}

/** Records the mode of a folder. */
export function claimMode(folder: string, mode: Mode): void {
  expectMode(folder, mode)
  changeMarker(folder, { mode })
}

const shown = (mode: Mode): string =>
  mode === 'shop' ? 'the shop' : `the queue "${mode.queue}" on ${mode.broker}`

/** Returns the mode for a queue of the user. The address may contain a password, which the mode must not have. */
export function modeOf(address: string, queue: string): Mode {
  const { protocol, hostname, port, pathname } = new URL(address)
  const defaultPort = protocol === 'amqps:' ? '5671' : '5672'
  return { broker: `${hostname}:${port || defaultPort}${pathname.replace(/^\/$/, '')}`, queue }
}
