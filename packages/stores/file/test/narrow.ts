// node --conditions=@redrive/source narrow.ts DIRECTORY
// Runs where files may not grow beyond a size: saves a few, one too large to fit, and a few more.
import { isRedriveError } from '@redrive/core'
import { fileStore } from '../src/index.ts'
import { deadLetter } from './place.ts'

const store = fileStore({ directory: process.argv[2] ?? '' })
const answers: string[] = []
const save = async (id: string, text = id) => {
  try {
    await store.save(deadLetter(id, { text }))
    answers.push(`${id} saved`)
  } catch (error) {
    answers.push(`${id} ${isRedriveError(error) ? error.code : String(error)}`)
  }
}
for (const id of ['a', 'b']) await save(id)
await Promise.all([save('too large', 'x'.repeat(1_000_000)), save('together with it')])
for (const id of ['c', 'd']) await save(id)
const { deadLetters } = await store.list({ limit: 100 })
process.stdout.write(JSON.stringify({ answers, ids: deadLetters.map(({ id }) => id) }))
