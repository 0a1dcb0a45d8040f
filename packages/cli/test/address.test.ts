import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import type { Io } from '../src/io.ts'
import { filledAddress } from '../src/server/address.ts'

function at(env: Readonly<Record<string, string>>, cwd = '/') {
  let stderr = ''
  const write = (text: string) => void (stderr += text)
  const output = { write, isTTY: false, columns: 100, hasColor: false }
  const io = { env, cwd, stderr: output, stdout: output } as unknown as Io
  return { fill: (address: string) => filledAddress(io, address), stderr: () => stderr }
}

describe('an address of a broker', () => {
  test('has its password in a variable, with any characters', async () => {
    const { fill, stderr } = at({ PASSWORD: 'a/b@c:d' })
    const filled = await fill('amqps://app:${PASSWORD}@rabbit.internal/prod')
    expect(decodeURIComponent(new URL(filled).password)).toBe('a/b@c:d')
    expect(new URL(filled).hostname).toBe('rabbit.internal')
    expect(stderr()).toBe('')
  })

  test('can be a variable as a whole', async () => {
    const url = 'amqps://app:a%2Fb@rabbit.internal/prod'
    expect(await at({ RABBITMQ_URL: url }).fill('${RABBITMQ_URL}')).toBe(url)
  })

  test('reads a file whose name is in a variable', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'redrive-address-'))
    writeFileSync(join(folder, 'password'), 'hunter2\n')
    const { fill } = at({ PASSWORD_FILE: 'password' }, folder)
    expect(new URL(await fill('kafka://app:${PASSWORD}@kafka:9092')).password).toBe('hunter2')
    await expect(at({ PASSWORD_FILE: 'none' }, folder).fill('${PASSWORD}')).rejects.toThrow(
      'cannot read the file "none" of PASSWORD_FILE (ENOENT).',
    )
  })

  test('names a variable that is not set', async () => {
    await expect(at({}).fill('amqp://app:${PASSWORD}@rabbit')).rejects.toThrow(
      'the placeholder ${PASSWORD} has no value. Set PASSWORD, or set PASSWORD_FILE',
    )
  })

  test('with a password prints a warning, except for a broker on this machine', async () => {
    const remote = at({})
    expect(await remote.fill('amqp://app:hunter2@rabbit.internal')).toContain('hunter2')
    expect(remote.stderr()).toContain('write ${NAME} instead of the password')
    expect(remote.stderr()).not.toContain('hunter2')
    const local = at({})
    for (const host of ['localhost', '127.0.0.1', '[::1]'])
      await local.fill(`amqp://a:b@${host}:5672`)
    await local.fill('amqp://rabbit.internal')
    expect(local.stderr()).toBe('')
  })
})
