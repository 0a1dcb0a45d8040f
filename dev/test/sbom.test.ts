import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { publicPackages, ROOT } from '../check/workspace.ts'
import { bomOf } from '../sbom/cyclonedx.ts'
import { readLockfile } from '../sbom/lockfile.ts'
import { workspaceBom } from '../sbom/main.ts'

const LOCKFILE = `lockfileVersion: '9.0'

settings:
  autoInstallPeers: true

importers:

  .:
    devDependencies:
      vitest:
        specifier: 'catalog:'
        version: 5.1.0

  packages/one:
    dependencies:
      '@scope/pkg':
        specifier: 'catalog:'
        version: 1.2.3(peer@4.0.0)
      '@redrive/two':
        specifier: workspace:^
        version: link:../two
    devDependencies:
      vitest:
        specifier: 'catalog:'
        version: 5.1.0

  packages/two:
    optionalDependencies:
      renamed:
        specifier: npm:peer@4.0.0
        version: peer@4.0.0

packages:

  '@scope/pkg@1.2.3':
    resolution: {integrity: sha512-AAEC}
    engines: {node: '>=20'}
    peerDependencies:
      peer: '*'

  peer@4.0.0:
    resolution: {integrity: sha512-AwQF}

  vitest@5.1.0:
    resolution: {integrity: sha512-BgcI}

snapshots:

  '@scope/pkg@1.2.3(peer@4.0.0)':
    dependencies:
      peer: 4.0.0

  peer@4.0.0: {}

  vitest@5.1.0: {}
`
const PUBLISHED = [
  { name: '@redrive/one', version: '0.1.0', folder: 'packages/one' },
  { name: '@redrive/two', version: '0.1.0', folder: 'packages/two' },
]

describe('the software bill of materials', () => {
  test('lists published packages and what they bring, with hashes and the graph', () => {
    const { components, dependencies } = bomOf(readLockfile(LOCKFILE), PUBLISHED)
    expect(components.map(({ purl }) => purl)).toEqual([
      'pkg:npm/%40redrive/one@0.1.0',
      'pkg:npm/%40redrive/two@0.1.0',
      'pkg:npm/%40scope/pkg@1.2.3',
      'pkg:npm/peer@4.0.0',
    ])
    expect(components[2]?.hashes).toEqual([{ alg: 'SHA-512', content: '000102' }])
    expect(dependencies).toEqual([
      {
        ref: 'pkg:npm/%40redrive/one@0.1.0',
        dependsOn: ['pkg:npm/%40redrive/two@0.1.0', 'pkg:npm/%40scope/pkg@1.2.3'],
      },
      { ref: 'pkg:npm/%40redrive/two@0.1.0', dependsOn: ['pkg:npm/peer@4.0.0'] },
      { ref: 'pkg:npm/%40scope/pkg@1.2.3', dependsOn: ['pkg:npm/peer@4.0.0'] },
      { ref: 'pkg:npm/peer@4.0.0', dependsOn: [] },
      {
        ref: 'redrive',
        dependsOn: ['pkg:npm/%40redrive/one@0.1.0', 'pkg:npm/%40redrive/two@0.1.0'],
      },
    ])
  })

  test('rejects a lockfile that it cannot read', () => {
    const read = (text: string) => () => bomOf(readLockfile(text), PUBLISHED)
    expect(read(LOCKFILE.replace("'9.0'", "'10.0'"))).toThrow('has version 10.0, expected 9.0')
    expect(read(LOCKFILE.replace('integrity: sha512-AwQF', 'tarball: x'))).toThrow(
      'no integrity of "peer@4.0.0"',
    )
    expect(read(LOCKFILE.replace('\n  peer@4.0.0: {}\n', ''))).toThrow('no package "peer@4.0.0"')
  })

  test('of this workspace is complete and always the same', () => {
    const bom = workspaceBom()
    expect(workspaceBom()).toEqual(bom)
    expect(bom).toMatchObject({ bomFormat: 'CycloneDX', specVersion: '1.6', version: 1 })
    expect(bom.serialNumber).toMatch(/^urn:uuid:[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/)
    const names = new Set(bom.components.map(({ name }) => name))
    for (const { name, folder } of publicPackages()) {
      expect(names).toContain(name)
      const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')) as {
        readonly dependencies?: Readonly<Record<string, string>>
      }
      for (const needed of Object.keys(manifest.dependencies ?? {})) expect(names).toContain(needed)
    }
    // The server contains the build of the console.
    for (const path of globSync('packages/console/src/**/*.{ts,tsx}', { cwd: ROOT })) {
      const text = readFileSync(join(ROOT, path), 'utf8')
      for (const [, imported = ''] of text.matchAll(/ from '((?:@[^/']+\/)?[^./'@][^/']*)/g)) {
        expect(names).toContain(imported)
      }
    }
    for (const one of ['vitest', 'typescript', 'oidc-provider']) expect(names).not.toContain(one)
    const refs = new Set([...bom.components.map(({ purl }) => purl), 'redrive'])
    for (const { ref, dependsOn } of bom.dependencies) {
      expect(refs).toContain(ref)
      for (const each of dependsOn) expect(refs).toContain(each)
    }
    const foreign = bom.components.filter(({ name }) => !/^(@redrive\/|redrive$)/.test(name))
    expect(foreign.every(({ hashes }) => hashes?.[0]?.content.length === 128)).toBe(true)
  })
})

describe('the workflows', () => {
  const folder = join(ROOT, '.github/workflows')
  const textOf = (name: string) => readFileSync(join(folder, name), 'utf8')

  test('use actions by commit, because a tag can be moved', () => {
    for (const name of globSync('*.yml', { cwd: folder })) {
      for (const [, action = ''] of textOf(name).matchAll(/uses: (\S+)/g)) {
        expect(action).toMatch(/^[\w-]+\/[\w-]+@[\da-f]{40}$/)
      }
    }
  })

  test('make the bill of materials and the provenance, and verify signatures', () => {
    const release = textOf('release.yml')
    for (const part of ['pnpm run sbom', 'npm audit signatures', 'id-token: write', 'PROVENANCE']) {
      expect(release).toContain(part)
    }
  })

  test('give the right to sign only to a job that runs no code of the repository', () => {
    for (const name of globSync('*.yml', { cwd: folder })) {
      const [head = '', ...jobs] = textOf(name).split(/^ {2}(?=[\w-]+:$)/m)
      expect(head).not.toContain('write')
      const signing = jobs.filter((job) => job.includes(': write'))
      expect(signing.map((job) => job.split(':')[0])).toEqual(
        name === 'release.yml' ? ['sign'] : [],
      )
      for (const job of signing) {
        expect(job).not.toMatch(/checkout|\.ci\/|dev\/|pnpm|npm (install|ci|run|exec)|npx|node /)
      }
    }
  })
})
