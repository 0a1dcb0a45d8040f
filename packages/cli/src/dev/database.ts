import { CommandError, EXIT } from '../exit.ts'
import type { Io } from '../io.ts'
import { accountsFor } from './account.ts'
import { type Binaries, downloadBinaries, findBinaries } from './binaries.ts'
import { clearFolder, type DevFolder, type LockedFolder, readFolder } from './folder.ts'
import { hasLeftover, stopLeftover } from './leftover.ts'
import type { Mode } from './marker.ts'
import { expectMode } from './mode.ts'
import { currentPlatform, packageFor } from './platforms.ts'
import { createCluster, type DevDatabase, startPostgres } from './postgres.ts'
import { step } from './step.ts'

interface Preparation {
  /** Whether to delete the data. */
  readonly isFresh: boolean
  readonly mode: Mode
}

/** Stops what a killed process has left in the folder and, with `isFresh`, deletes its data. */
export async function prepareFolder(
  io: Io,
  folder: LockedFolder,
  { isFresh, mode }: Preparation,
): Promise<DevFolder> {
  if (!isFresh) expectMode(folder.path, mode)
  if (hasLeftover(folder.path))
    await stopLeftover(readFolder(folder), await binariesFor(io, folder))
  if (isFresh) clearFolder(folder)
  return readFolder(folder)
}

/** Starts the PostgreSQL of a folder. The first start downloads it and creates the files. */
export async function startDatabase(io: Io, folder: DevFolder): Promise<DevDatabase> {
  const binaries = await binariesFor(io, folder)
  return step(io, folder.isNew ? 'PostgreSQL 18, new database' : 'PostgreSQL 18', async () => {
    await createCluster(folder, binaries)
    return startPostgres(folder, binaries, io.signal)
  })
}

async function binariesFor(io: Io, { path }: Pick<DevFolder, 'path'>): Promise<Binaries> {
  const wanted = packageFor(currentPlatform())
  const accounts = accountsFor(path, io.env)
  const found = findBinaries(wanted, accounts, io.env)
  if (found !== undefined) return found
  await step(io, 'Download of PostgreSQL 18, 24 MB, once', () => downloadBinaries(wanted, io))
  const downloaded = findBinaries(wanted, accounts, io.env)
  if (downloaded !== undefined) return downloaded
  throw new CommandError(
    EXIT.failure,
    'PostgreSQL does not run as root, and no other user can run the downloaded programs. Run the command as another user, or set XDG_CACHE_HOME to a folder that all users can enter.',
  )
}
