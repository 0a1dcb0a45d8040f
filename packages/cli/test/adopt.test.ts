import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { rewriteAmqplib } from '../src/adopt/amqplib.ts'
import { rewriteKafkajs } from '../src/adopt/kafkajs.ts'
import { run } from './world.ts'

const AMQP = `import { connect } from 'amqplib'
import { CardDeclined, charge } from './payments'

interface Order {
  id: string
}

export async function main(url: string): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  await channel.prefetch(20)
  await channel.consume('orders', async (message) => {
    if (!message) return
    const order = JSON.parse(message.content.toString()) as Order
    const id: string = message.properties.messageId
    try {
      await charge(order, id, message.properties.headers)
    } catch (error) {
      if (error instanceof CardDeclined) {
        return channel.nack(message, false, false)
      }
      channel.nack(message, false, true)
      return
    }
    channel.ack(message)
  })
}
`

const AMQP_CHANGED = `import { connect } from 'amqplib'
import { CardDeclined, charge } from './payments'
import { business } from '@redrive/core'
import { rabbitmq } from '@redrive/rabbitmq'
import { consume } from '@redrive/runtime'

interface Order {
  id: string
}

export async function main(url: string): Promise<void> {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  await channel.prefetch(20)
  const consumer = await consume(rabbitmq({ url, queue: 'orders', topology: 'adopt', queueType: 'classic' }), async (message) => {
    if (!message) return
    const order = JSON.parse(Buffer.from(message.bytes).toString()) as Order
    const id: string = message.id
    try {
      await charge(order, id, message.headers)
    } catch (error) {
      if (error instanceof CardDeclined) {
        throw error
      }
      throw error
      return
    }
  }, { concurrency: 20, classify: [business(CardDeclined)] })
  process.once('SIGTERM', () => void consumer.stop().then(() => connection.close()))
}
`

const changed = (proposal: ReturnType<typeof rewriteAmqplib>): string => {
  if (proposal?.kind === 'change') return proposal.after
  throw new Error(`expected a change, got ${JSON.stringify(proposal)}`)
}
const reasons = (proposal: ReturnType<typeof rewriteAmqplib>): readonly string[] =>
  proposal?.kind === 'by hand' ? proposal.reasons.map(({ line, text }) => `${line}: ${text}`) : []

describe('a consumer with amqplib', () => {
  test('in TypeScript keeps its types, and acknowledges by returning', () => {
    expect(changed(rewriteAmqplib(AMQP, true))).toBe(AMQP_CHANGED)
  })

  test('in a file with a declared quorum queue and CommonJS gets the same style', () => {
    const text = `const amqp = require("amqplib");

async function main() {
  const connection = await amqp.connect("amqp://localhost");
  const channel = await connection.createChannel();
  await channel.assertQueue("orders", { arguments: { "x-queue-type": "quorum" } });
  channel.consume("orders", async (msg) => {
    await work(msg.content);
    channel.ack(msg);
  }, { noAck: false });
}
`
    expect(changed(rewriteAmqplib(text, false))).toBe(`const amqp = require("amqplib");
const { rabbitmq } = require("@redrive/rabbitmq");
const { consume } = require("@redrive/runtime");

async function main() {
  const connection = await amqp.connect("amqp://localhost");
  const channel = await connection.createChannel();
  await channel.assertQueue("orders", { arguments: { "x-queue-type": "quorum" } });
  const consumer = await consume(rabbitmq({ url: "amqp://localhost", queue: "orders", topology: 'adopt' }), async (msg) => {
    await work(Buffer.from(msg.bytes));
  });
  process.once('SIGTERM', () => void consumer.stop().then(() => connection.close()));
}
`)
  })

  const handler = (body: string, options = '') => `import amqp from 'amqplib'
const connection = await amqp.connect(url)
const channel = await connection.createChannel()
await channel.consume('orders', async (message) => {
${body}
}${options})
`
  test.each([
    [
      'acknowledges before its work has ended',
      'channel.ack(message)\nawait work()',
      '',
      '5: The handler acknowledges before its work has ended.',
    ],
    [
      'acknowledges in a callback',
      'work(() => { channel.ack(message) })',
      '',
      '5: The handler settles the message in another function.',
    ],
    [
      'passes the message on',
      'await work(message)\nchannel.ack(message)',
      '',
      '5: The handler passes "message" to other code.',
    ],
    [
      'passes the channel on',
      'await work(channel)\nchannel.ack(message)',
      '',
      '5: The handler uses "channel" for another purpose.',
    ],
    [
      'publishes on the channel',
      "channel.sendToQueue('a', message.content)\nchannel.ack(message)",
      '',
      '5: The handler calls sendToQueue of the channel.',
    ],
    [
      'rejects without an error',
      'if (bad) return channel.nack(message, false, false)\nchannel.ack(message)',
      '',
      '5: The handler rejects the message without an error that it has caught.',
    ],
    [
      'counts attempts',
      'try {\nawait work()\nchannel.ack(message)\n} catch (error) {\nif (attempts > 5) channel.nack(message, false, false)\n}',
      '',
      '9: The handler rejects the message under a condition that Redrive cannot convert.',
    ],
    [
      'uses the fields of the delivery',
      'await work(message.fields.redelivered)\nchannel.ack(message)',
      '',
      '5: The handler uses "message.fields.redelivered".',
    ],
    [
      'acknowledges nothing',
      'await work(message.content)',
      '',
      '4: The handler does not acknowledge the message.',
    ],
    [
      'is exclusive',
      'channel.ack(message)',
      ', { exclusive: true }',
      '6: The consumer has options.',
    ],
    [
      'uses a name that the change adds',
      'const consumer = 1\nchannel.ack(message)',
      '',
      '5: The file already uses the name "consumer".',
    ],
  ])('that %s is left to the user', (_, body, options, reason) => {
    expect(reasons(rewriteAmqplib(handler(body, options), false))).toEqual([reason])
  })

  test('stops before each function closes the channel or the connection', () => {
    const text = `import { connect } from 'amqplib'
export async function start(url) {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  await channel.consume('orders', (message) => {
    channel.ack(message)
  })
  process.once('SIGINT', async () => {
    await connection.close()
  })
  return {
    async close() {
      await channel.close()
      await connection.close()
    },
  }
}
`
    const after = changed(rewriteAmqplib(text, false))
    expect(after).toContain(`  process.once('SIGINT', async () => {
    await consumer.stop()
    await connection.close()
  })`)
    expect(after).toContain(`    async close() {
      await consumer.stop()
      await channel.close()
      await connection.close()
    },`)
    expect(after).not.toContain('SIGTERM')
  })

  test.each([
    [
      'const connection = await connect(url)',
      "process.on('SIGTERM', () => process.exit(0))\n  const connection = await connect(url)",
      ['6: The file handles a signal, and does not cancel the consumer there.'],
    ],
    [
      '  })\n}',
      '  })\n  return () => connection.close()\n}',
      ['8: The stop of the consumer cannot be added to this close.'],
    ],
    [
      'const connection = await connect(url)',
      'const connection = await connect(url)\n  const stop = async () => {\n    await connection.close()\n  }',
      ['5: The stop of the consumer cannot be added to this close.'],
    ],
    [
      "'orders', (",
      "(await channel.assertQueue('', { durable: false })).queue, (",
      ['5: The queue is exclusive, or the broker deletes it with its consumer.'],
    ],
    [
      "'orders', (",
      "(await channel.assertQueue('a', { autoDelete: true })).queue, (",
      ['5: The queue is exclusive, or the broker deletes it with its consumer.'],
    ],
  ])(
    'that cannot be stopped, or whose queue is temporary, is left to the user: %s',
    (from, to, expected) => {
      const text = `import { connect } from 'amqplib'
export async function start(url) {
  const connection = await connect(url)
  const channel = await connection.createChannel()
  await channel.consume('orders', (message) => {
    channel.ack(message)
  })
}
`
      expect(reasons(rewriteAmqplib(text.replace(from, to), false))).toEqual(expected)
    },
  )

  test('loses the type of its message, which is another one', () => {
    const text = AMQP.replace(
      '(message) =>',
      '(message: amqp.ConsumeMessage | null): Promise<void> =>',
    )
    const after = AMQP_CHANGED.replace('(message) =>', '(message): Promise<void> =>')
    expect(changed(rewriteAmqplib(text, true))).toBe(after)
    const other = AMQP.replace('(message) =>', '(message: { content: Buffer }) =>')
    expect(reasons(rewriteAmqplib(other, true))).toEqual([
      '12: The type of the parameter is not a plain name.',
    ])
  })

  test('in a module without static imports gets imports, and lines end as before', () => {
    const text = `const amqp = await import('amqplib');
const connection = await amqp.connect('amqp://localhost');
const channel = await connection.createChannel();
await channel.consume('orders', (message) => {
  channel.ack(message);
});
`
    const after = changed(rewriteAmqplib(text, false))
    expect(after).toContain("import { consume } from '@redrive/runtime';\n")
    const windows = (one: string) => one.replaceAll('\n', '\r\n')
    expect(changed(rewriteAmqplib(windows(text), false))).toBe(windows(after))
  })

  test('is left to the user when the file has two, or no address', () => {
    const two = `import amqp from 'amqplib'
await channel.consume('a', async (m) => { channel.ack(m) })
await channel.consume('b', async (m) => { channel.ack(m) })
`
    expect(reasons(rewriteAmqplib(two, false))).toEqual([
      '3: The file has several consumers.',
      '2: The file does not connect to one broker with an address.',
    ])
  })

  test('is not proposed for files without one', () => {
    expect(
      rewriteAmqplib("import amqp from 'amqplib'\nawait amqp.connect(url)", false),
    ).toBeUndefined()
    expect(rewriteAmqplib('stream.consume(a, (b) => b)', false)).toBeUndefined()
  })
})

const KAFKA = `import { Kafka } from 'kafkajs'
import { charge } from './payments.js'

const kafka = new Kafka({ clientId: 'billing', brokers: process.env.KAFKA_BROKERS.split(',') })
const consumer = kafka.consumer({ groupId: 'billing' })

await consumer.connect()
await consumer.subscribe({ topic: 'orders', fromBeginning: true })
await consumer.run({
  eachMessage: async ({ message }) => {
    await charge(JSON.parse(message.value.toString()))
  },
})

process.once('SIGTERM', async () => {
  await consumer.disconnect()
})
`

describe('a consumer with kafkajs', () => {
  test('keeps its client and its group', () => {
    expect(changed(rewriteKafkajs(KAFKA, false))).toBe(`import { Kafka } from 'kafkajs'
import { charge } from './payments.js'
import { withRedrive } from '@redrive/kafka/kafkajs'

const kafka = new Kafka({ clientId: 'billing', brokers: process.env.KAFKA_BROKERS.split(',') })
const consumer = kafka.consumer({ groupId: 'billing' })
const producer = kafka.producer({ idempotent: true })
const admin = kafka.admin()

await consumer.connect()
await Promise.all([producer.connect(), admin.connect()])
const redriven = await withRedrive(async (message) => {
    await charge(JSON.parse(Buffer.from(message.bytes).toString()))
  }, { topic: 'orders', group: 'billing', consumer, producer, admin })
await consumer.subscribe({ topics: redriven.topics, fromBeginning: true })
await consumer.run(redriven.run)

process.once('SIGTERM', async () => {
  await redriven.stop()
  await consumer.disconnect()
  await Promise.all([producer.disconnect(), admin.disconnect()])
})
`)
  })

  test('loses the type of its message, which is another one', () => {
    const text = KAFKA.replace('({ message })', '({ message }: EachMessagePayload)')
    expect(changed(rewriteKafkajs(text, true))).toContain('withRedrive(async (message) => {')
  })

  test.each([
    [
      'uses the partition',
      ['({ message })', '({ message, partition })'],
      '10: The handler uses more than the message.',
    ],
    [
      'uses the key',
      ['message.value.toString()', 'message.key'],
      '11: The handler uses "message.key".',
    ],
    [
      'checks for a tombstone',
      ['await charge(', 'if (message.value === null) return\nawait charge('],
      '11: The handler uses "message.value === null".',
    ],
    [
      'passes the message on',
      ['message.value.toString()', 'decode(message)'],
      '11: The handler passes the message to other code.',
    ],
    [
      'commits offsets in its code',
      ['run({', 'run({ autoCommit: false,'],
      '9: run() has options other than eachMessage.',
    ],
    [
      'subscribes to several topics',
      ["topic: 'orders'", "topics: ['orders', 'mails']"],
      '8: The consumer does not subscribe to one topic.',
    ],
    [
      'has a producer',
      ['const consumer', 'const producer = kafka.producer()\nconst consumer'],
      '5: The file already uses the name "producer".',
    ],
    [
      'is not disconnected',
      ['await consumer.disconnect()', ''],
      '9: The file does not disconnect "consumer" at its end.',
    ],
  ] as const)('that %s is left to the user', (_, [from, to], reason) => {
    const text = KAFKA.replace(
      from === 'message.value.toString()' ? 'JSON.parse(message.value.toString())' : from,
      to,
    )
    expect(reasons(rewriteKafkajs(text, false))).toEqual([reason])
  })
})

/** A project with these files, and what `redrive init` prints and writes in it. */
function project(files: Readonly<Record<string, string>>) {
  const cwd = mkdtempSync(join(tmpdir(), 'redrive-project-'))
  onTestFinished(() => rmSync(cwd, { recursive: true }))
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(cwd, name)), { recursive: true })
    writeFileSync(join(cwd, name), text)
  }
  return {
    folder: cwd,
    read: (name: string) => readFileSync(join(cwd, name), 'utf8'),
    init: (flags: readonly string[], answers?: boolean) =>
      run(['init', ...flags], { cwd, answers }),
  }
}

const pkg = (...names: readonly string[]) =>
  JSON.stringify({ dependencies: Object.fromEntries(names.map((name) => [name, '1'])) })

describe('redrive init in a project', () => {
  test('lists the libraries with the files that use them, what stays, and the guide', async () => {
    const { init } = project({
      'package.json': pkg('rascal', 'bullmq', '@golevelup/nestjs-rabbitmq', '@prisma/client', 'pg'),
      'src/jobs/worker.ts': "import { Worker } from 'bullmq'\n",
      'node_modules/other/index.js': "import 'bullmq'\n",
      'dist/worker.js': "import 'bullmq'\n",
    })
    const { stderr } = await init(['--dry-run'])
    expect(stderr).toContain(
      'bullmq in src/jobs/worker.ts. Stays as it is: jobs that stay in BullMQ: schedules, priorities, flows.\n  Guide: https://github.com/redrive/redrive/blob/main/docs/migrate-bullmq.md\n',
    )
    for (const page of ['migrate-rascal', 'migrate-nestjs-microservices', 'postgres']) {
      expect(stderr).toContain(`docs/${page}.md`)
    }
  })

  test('detects a library from source files alone', async () => {
    const { init } = project({ 'index.js': "const { Kafka } = require('kafkajs')\n" })
    expect((await init(['--dry-run'])).stderr).toContain('kafkajs in index.js. Stays as it is:')
  })

  test('finds the broker of a workspace in its source files, and skips what is not a file', async () => {
    const { init, folder } = project({
      'package.json': '\uFEFF{ "workspaces": ["services/*"] }',
      'services/orders/index.js': "const amqp = require('amqplib')\n",
      'vendor/three.js/README.md': '',
    })
    symlinkSync('missing.js', join(folder, 'link.js'))
    const { code, stderr } = await init(['--dry-run'])
    expect({ code, stderr }).toMatchObject({ code: 0 })
    expect(stderr).toContain('Found amqplib in services/orders/index.js.\n')
    expect(stderr).toContain('+      url: ${RABBITMQ_URL}\n')
  })

  test('shows a file of Windows without its line ends', async () => {
    const text = AMQP.replaceAll('\n', '\r\n')
    const { stderr } = await project({ 'index.ts': text }).init(['--dry-run'])
    expect(stderr).toContain('-    channel.ack(message)\n')
  })

  test('shows the change of a consumer, and changes nothing without --write', async () => {
    const { init, read } = project({ 'package.json': pkg('amqplib'), 'src/consumer.ts': AMQP })
    const { code, stderr } = await init(['--yes'])
    expect(code).toBe(0)
    expect(stderr).toContain('--- src/consumer.ts\n+++ src/consumer.ts\n')
    expect(stderr).toContain("+import { rabbitmq } from '@redrive/rabbitmq'\n")
    expect(stderr).toContain('-    channel.ack(message)\n')
    expect(stderr).toContain('then change these files with: redrive init --write')
    expect(read('src/consumer.ts')).toBe(AMQP)
  })

  test('changes a consumer with --write after a question, also when the config exists', async () => {
    const { init, read } = project({ 'package.json': pkg('amqplib'), 'src/consumer.ts': AMQP })
    await init(['--yes'])
    const config = read('redrive.config.yaml')
    const declined = await init(['--write'], false)
    expect(declined.questions).toEqual(['Change src/consumer.ts?'])
    expect(read('src/consumer.ts')).toBe(AMQP)
    const { code, stdout } = await init(['--write'], true)
    expect({ code, stdout }).toEqual({
      code: 0,
      stdout:
        'Changed src/consumer.ts: 11 lines.\nInstall the packages that they import, and run your tests.\n',
    })
    expect(read('src/consumer.ts')).toBe(AMQP_CHANGED)
    expect(read('redrive.config.yaml')).toBe(config)
  })

  test('writes nothing in a dry run, and lists the lines that must be changed by hand', async () => {
    const text = AMQP.replace('await charge(order, id,', 'await charge(message, id,')
    const { init, read } = project({ 'package.json': pkg('amqplib'), 'src/consumer.ts': text })
    const { stderr } = await init(['--dry-run', '--write', '--yes'])
    expect(stderr).toContain(
      'src/consumer.ts: change this consumer by hand.\n  line 17: The handler passes "message" to other code.\n',
    )
    expect(read('src/consumer.ts')).toBe(text)
  })
})
