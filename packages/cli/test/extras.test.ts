import { expect, test } from 'vitest'
import manifest from '../package.json' with { type: 'json' }
import { missingExtra } from '../src/extras.ts'
import { VERSION } from '../src/version.ts'

const notFound = (name: string) =>
  Object.assign(new Error(`Cannot find package '${name}' imported from /redrive/bundle/main.js`), {
    code: 'ERR_MODULE_NOT_FOUND',
  })

test('recognises each optional peer, in a version that the package accepts', () => {
  const peers = Object.keys(manifest.peerDependencies)
  expect(peers.map((name) => missingExtra(notFound(name))?.name)).toEqual(peers)
  expect(missingExtra(notFound('@platformatic/kafka'))?.range).toBe(
    manifest.peerDependencies['@platformatic/kafka'],
  )
  expect(manifest.version).toBe(VERSION)
})

test('ignores other packages and other errors', () => {
  expect(missingExtra(notFound('left-pad'))).toBeUndefined()
  expect(missingExtra(new Error("Cannot find package '@redrive/server'"))).toBeUndefined()
  expect(missingExtra(undefined)).toBeUndefined()
})
