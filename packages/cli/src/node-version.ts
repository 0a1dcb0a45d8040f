/** The oldest version of Node that can run this package, as in its `engines`. */
export const OLDEST_NODE: readonly [major: number, minor: number] = [22, 12]

/** Returns the error for a version of Node that is too old. */
export function nodeProblem(version: string): string | undefined {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [oldestMajor, oldestMinor] = OLDEST_NODE
  if (major > oldestMajor || (major === oldestMajor && minor >= oldestMinor)) return undefined
  return `Error: redrive needs Node ${OLDEST_NODE.join('.')} or later, and this is Node ${version}. Install a newer version, for example from https://nodejs.org.`
}
