import { generateKeyPairSync, sign } from 'node:crypto'
import { appendFile, readFile, writeFile } from 'node:fs/promises'
import { beforeEach, describe, expect, test } from 'vitest'
import { createAudit } from '../src/audit/audit.ts'
import { GENESIS } from '../src/audit/chain.ts'
import {
  type Checkpoint,
  QUIET_MS,
  startCheckpoints,
  writeCheckpoint,
} from '../src/audit/checkpoint.ts'
import { verifyAudit } from '../src/audit/verify.ts'
import { checkpointFile, entry, privateKey, publicKey, rehash, tamper } from './audit-stage.ts'
import { rejection, serverDatabase } from './database-stage.ts'

const pool = await serverDatabase('redrive_server_tamper')
let file: string

/** Ten entries, with checkpoints at 4 and 8. */
beforeEach(async () => {
  await tamper(
    pool,
    'truncate redrive_server.audit',
    `update redrive_server.audit_head set sequence = 0, hash = decode('${GENESIS}', 'hex')`,
  )
  file = await checkpointFile()
  const audit = createAudit({ pool })
  for (let place = 1; place <= 10; place++) {
    await audit.write(entry({ subject: `s${place}` }))
    if (place % 4 === 0) await writeCheckpoint({ pool, privateKey, file })
  }
})

const problems = async (checkpoints?: string) => {
  const verdict = await verifyAudit({ pool, checkpoints, publicKey })
  return verdict.problems.map(({ kind, sequence }) => `${kind} ${sequence}`)
}

test('verifyAudit finds no problem in an unchanged chain', async () => {
  expect(await verifyAudit({ pool, checkpoints: file, publicKey })).toEqual({
    entries: 10,
    checkpoints: 2,
    lastCheckpointAt: expect.closeTo(Date.now(), -5) as unknown,
    problems: [],
  })
})

describe('without checkpoints, verifyAudit detects that', () => {
  test.for([
    ['sequence', 'sequence = 6', 'sequence = 60', 'missing 7'],
    ['at', 'sequence = 6', 'at_ms = at_ms + 1', 'altered 6'],
    ['person', 'sequence = 6', "person = 'bob'", 'altered 6'],
    ['via', 'sequence = 6', "via = 'token'", 'altered 6'],
    ['operation', 'sequence = 6', "operation = 'restore'", 'altered 6'],
    ['outcome', 'sequence = 6', "outcome = 'denied'", 'altered 6'],
    ['source', 'sequence = 6', 'source = null', 'altered 6'],
    ['subject', 'sequence = 6', "subject = ''", 'altered 6'],
    ['facts', 'sequence = 6', `facts = '{"count": 1}'`, 'altered 6'],
    ['previous hash', 'sequence = 6', "previous = decode('00', 'hex')", 'unlinked 6'],
    ['hash', 'sequence = 6', "hash = decode('00', 'hex')", 'altered 6'],
    ['first entry', 'sequence = 1', "person = 'bob'", 'altered 1'],
    ['last entry', 'sequence = 10', "person = 'bob'", 'altered 10'],
  ] as const)('the %s was changed', async ([, where, set, found]) => {
    await tamper(pool, `update redrive_server.audit set ${set} where ${where}`)
    expect(await problems()).toEqual([found])
  })

  test('an entry in the middle was deleted', async () => {
    await tamper(pool, 'delete from redrive_server.audit where sequence = 5')
    expect(await problems()).toEqual(['missing 6'])
  })

  test('the first entries were deleted', async () => {
    await tamper(pool, 'delete from redrive_server.audit where sequence <= 5')
    expect(await problems()).toEqual(['missing 6'])
  })

  test('the last entries were deleted without changing the head', async () => {
    await tamper(pool, 'delete from redrive_server.audit where sequence > 5')
    expect(await problems()).toEqual(['head 5'])
  })

  test('two entries were swapped', async () => {
    await tamper(
      pool,
      'update redrive_server.audit set sequence = -1 where sequence = 5',
      'update redrive_server.audit set sequence = 5 where sequence = 6',
      'update redrive_server.audit set sequence = 6 where sequence = -1',
    )
    expect(await problems()).toEqual(['unlinked 5'])
  })
})

describe('with checkpoints, verifyAudit detects that', () => {
  test('the chain was truncated together with its head', async () => {
    await tamper(
      pool,
      'delete from redrive_server.audit where sequence > 5',
      'update redrive_server.audit_head set sequence = 5, hash = (select hash from redrive_server.audit where sequence = 5)',
    )
    expect(await problems()).toEqual([])
    expect(await problems(file)).toEqual(['truncated 8'])
  })

  test('the chain was emptied', async () => {
    await tamper(
      pool,
      'truncate redrive_server.audit',
      `update redrive_server.audit_head set sequence = 0, hash = decode('${GENESIS}', 'hex')`,
    )
    expect(await problems()).toEqual([])
    expect(await problems(file)).toEqual(['truncated 4', 'truncated 8'])
  })

  test('the chain was rewritten with new hashes', async () => {
    await tamper(pool, `update redrive_server.audit set person = 'bob' where sequence = 6`)
    await rehash(pool)
    expect(await problems()).toEqual([])
    expect(await problems(file)).toEqual(['rewritten 8'])
  })

  test('an entry was deleted and the following ones were renumbered', async () => {
    await tamper(
      pool,
      'delete from redrive_server.audit where sequence = 2',
      'update redrive_server.audit set sequence = -sequence + 1 where sequence > 2',
      'update redrive_server.audit set sequence = -sequence where sequence < 0',
    )
    await rehash(pool)
    expect(await problems()).toEqual([])
    expect(await problems(file)).toEqual(['rewritten 4', 'rewritten 8'])
  })

  test('a checkpoint was forged for a rewritten chain', async () => {
    await tamper(pool, `update redrive_server.audit set person = 'bob' where sequence = 6`)
    await rehash(pool)
    const stranger = generateKeyPairSync('ed25519').privateKey
    const forged = await checkpointFile()
    await writeCheckpoint({ pool, privateKey: stranger, file: forged })
    expect(await problems(forged)).toEqual(['signature 10'])
  })

  test.each([
    ['the first', 1, 'checkpoint_missing 8'],
    ['a middle', 2, 'checkpoint_missing 10'],
  ])('%s checkpoint was removed', async (_, line, found) => {
    await writeCheckpoint({ pool, privateKey, file })
    const lines = (await readFile(file, 'utf8')).split('\n')
    await writeFile(file, lines.toSpliced(line - 1, 1).join('\n'))
    expect(await problems(file)).toEqual([found])
  })

  test('a checkpoint was changed', async () => {
    const text = await readFile(file, 'utf8')
    await writeFile(file, text.replace('"sequence":4', '"sequence":3'))
    expect(await problems(file)).toEqual(['signature 3'])
  })

  test('checkpoints are missing or unreadable', async () => {
    const none = await checkpointFile()
    expect((await rejection(problems(none))).message).toMatch(/no checkpoint/)
    expect((await rejection(verifyAudit({ pool, checkpoints: file }))).message).toMatch(
      /public key/,
    )
    await appendFile(file, '{"sequence":9')
    expect((await rejection(problems(file))).message).toMatch(
      /checkpoints\.jsonl:3 is not a valid checkpoint/,
    )
  })
})

describe('a checkpoint', () => {
  test('is not written when the chain is unchanged since the last one', async () => {
    expect(await writeCheckpoint({ pool, privateKey, file })).toMatchObject({ sequence: 10 })
    expect(await writeCheckpoint({ pool, privateKey, file })).toBeUndefined()
  })

  test('is written after a quiet hour, so that the age of the last one shows a removed end', async () => {
    const first = await writeCheckpoint({ pool, privateKey, file })
    const [last = ''] = (await readFile(file, 'utf8')).trim().split('\n').slice(-1)
    const old = { ...(JSON.parse(last) as Checkpoint), at: (first?.at ?? 0) - QUIET_MS }
    const other = await checkpointFile()
    const text = Buffer.from(
      JSON.stringify(['redrive audit checkpoint 2', old.sequence, old.hash, old.at, GENESIS]),
    )
    const signature = sign(null, text, privateKey).toString('base64')
    await writeFile(other, `${JSON.stringify({ ...old, previous: GENESIS, signature })}\n`)
    expect(await writeCheckpoint({ pool, privateKey, file: other })).toMatchObject({ sequence: 10 })
    expect(await problems(other)).toEqual([])
  })

  test('of an earlier release, without a link, is accepted', async () => {
    const other = await checkpointFile()
    const [line = ''] = (await readFile(file, 'utf8')).split('\n')
    const { sequence, hash, at } = JSON.parse(line) as Checkpoint
    const text = Buffer.from(JSON.stringify(['redrive audit checkpoint 1', sequence, hash, at]))
    const signature = sign(null, text, privateKey).toString('base64')
    await writeFile(other, `${JSON.stringify({ sequence, hash, at, signature })}\n`)
    expect(await writeCheckpoint({ pool, privateKey, file: other })).toMatchObject({ sequence: 10 })
    expect(await problems(other)).toEqual([])
  })

  test('is not written when the chain does not contain the last one', async () => {
    await tamper(pool, `update redrive_server.audit set person = 'bob' where sequence = 6`)
    await rehash(pool)
    const before = await readFile(file, 'utf8')
    const error = await rejection(writeCheckpoint({ pool, privateKey, file }))
    expect(error).toMatchObject({ code: 'CONFLICT' })
    expect(error.message).toMatch(/redrive audit verify/)
    expect(await readFile(file, 'utf8')).toBe(before)
  })

  test('is written at the start and at the end', async () => {
    const errors: unknown[] = []
    const onError = (error: unknown) => errors.push(error)
    const checkpoints = await startCheckpoints({
      pool,
      privateKey,
      file,
      everyMs: 3_600_000,
      onError,
    })
    await createAudit({ pool }).write(entry())
    await checkpoints.stop()
    const lines = (await readFile(file, 'utf8')).trim().split('\n')
    expect(lines.map((line) => (JSON.parse(line) as { sequence: number }).sequence)).toEqual([
      4, 8, 10, 11,
    ])
    expect(errors).toEqual([])
    expect(await problems(file)).toEqual([])
  })

  test('requires an Ed25519 key and a writable file', async () => {
    const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const error = await rejection(writeCheckpoint({ pool, privateKey: other.privateKey, file }))
    expect(error.message).toMatch(/openssl genpkey/)
    const verify = verifyAudit({ pool, checkpoints: file, publicKey: other.publicKey })
    expect(await rejection(verify)).toMatchObject({ code: 'POLICY_INVALID' })
    const noFolder = writeCheckpoint({ pool, privateKey, file: `${file}.nowhere/file` })
    expect((await rejection(noFolder)).message).toMatch(/Check that the folder exists/)
  })

  test('prevents a start with a manipulated chain', async () => {
    await tamper(pool, `update redrive_server.audit set person = 'bob' where sequence = 6`)
    await rehash(pool)
    const start = startCheckpoints({
      pool,
      privateKey,
      file,
      everyMs: 1_000,
      onError: () => undefined,
    })
    expect(await rejection(start)).toMatchObject({ code: 'CONFLICT' })
  })
})
