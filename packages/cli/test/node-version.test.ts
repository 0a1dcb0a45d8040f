import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { nodeProblem, OLDEST_NODE } from '../src/node-version.ts'

test('the oldest Node is that of package.json', () => {
  const manifest = readFileSync(new URL('../package.json', import.meta.url), 'utf8')
  const { engines } = JSON.parse(manifest) as { readonly engines: { readonly node: string } }
  expect(engines.node).toBe(`>=${OLDEST_NODE.join('.')}`)
})

test.each(['22.12.0', '22.22.3', '24.0.0', '26.1.0', '25.0.0-nightly'])(
  'Node %s runs',
  (version) => {
    expect(nodeProblem(version)).toBeUndefined()
  },
)

test.each(['16.20.2', '20.20.2', '22.0.0', '22.11.0'])(
  'Node %s is reported with the version to install',
  (version) => {
    expect(nodeProblem(version)).toBe(
      `Error: redrive needs Node 22.12 or later, and this is Node ${version}. Install a newer version, for example from https://nodejs.org.`,
    )
  },
)
