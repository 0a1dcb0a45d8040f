import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { addressOf } from '../src/dev/address.ts'
import { writeConfig } from '../src/dev/config.ts'
import { terminalAt } from './dev-process.ts'

const folder = mkdtempSync(join(tmpdir(), 'redrive-dev-address-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const at = (env: Readonly<Record<string, string>>) => ({ ...terminalAt('', true).io, env })

describe('an address of redrive dev', () => {
  test.each(['hunter2', 'a+b=c'])('has a placeholder in the config for %s', async (password) => {
    const io = at({ PASSWORD: password })
    const text = 'postgres://app:${PASSWORD}@db.internal/shop'
    const database = await addressOf(io, '--database', text)
    expect(decodeURIComponent(new URL(database.url).password)).toBe(password)
    const { config, file } = await writeConfig(io, folder, {
      database: database.text,
      port: 8080,
      sources: {},
    })
    const written = readFileSync(file, 'utf8')
    expect(written).toContain(text)
    expect(written).not.toContain(password)
    expect(new URL(config.database.url.reveal()).password).toBe(
      new URL(text.replace('${PASSWORD}', password)).password,
    )
  })

  test('is refused when the config would read another address', async () => {
    const io = at({ PASSWORD: 'a/b@c', URL_OF_BROKER: 'amqp://app:a%2Fb%40c@rabbit' })
    await expect(addressOf(io, '--attach', 'amqp://app:${PASSWORD}@rabbit')).rejects.toThrow(
      /^--attach: the value of a placeholder has characters .*percent-encoded.*'\$\{NAME\}'$/,
    )
    expect(await addressOf(io, '--attach', '${URL_OF_BROKER}')).toEqual({
      url: 'amqp://app:a%2Fb%40c@rabbit',
      text: '${URL_OF_BROKER}',
    })
  })

  test('keeps a text in the config that only looks like a placeholder', async () => {
    const { url, text } = await addressOf(at({}), '--attach', 'amqp://app:a${-b@rabbit')
    expect([url, text]).toEqual(['amqp://app:a${-b@rabbit', 'amqp://app:a$${-b@rabbit'])
  })
})
