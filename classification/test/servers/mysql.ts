import { createServer, type Socket } from 'node:net'
import { type Listener, listen } from './tcp.ts'

/** An error of a MySQL server: its number, SQLSTATE and message. */
export type MysqlError = readonly [errno: number, sqlState: string, message: string]

export interface MysqlAnswers {
  /** The response to the password. Default: it is accepted. */
  readonly login?: MysqlError
  /** The response to each query; `close` ends the connection, `silence` sends nothing. */
  readonly query?: MysqlError | 'close' | 'silence'
}

/** Bytes before the payload of a packet: three for its length, one for its sequence number. */
const HEADER = 4

/** Starts a server that speaks the MySQL protocol as far as logins and failing queries need it. */
export function listenAsMysql({ login, query }: MysqlAnswers): Promise<Listener> {
  return listen(
    createServer((socket) => {
      let isLoggedIn = false
      send(socket, 0, greeting())
      onPacket(socket, (sequence) => {
        if (!isLoggedIn) {
          isLoggedIn = true
          send(socket, sequence + 1, login === undefined ? ok() : failed(login))
        } else if (query === 'close') socket.destroy()
        else if (query !== undefined && query !== 'silence') send(socket, 1, failed(query))
      })
    }),
  )
}

/** Calls `handle` with the sequence number of each packet. */
function onPacket(socket: Socket, handle: (sequence: number) => void): void {
  let pending = Buffer.alloc(0)
  socket.on('data', (chunk) => {
    pending = Buffer.concat([pending, chunk])
    while (pending.length >= HEADER && pending.length >= HEADER + pending.readUIntLE(0, 3)) {
      const sequence = pending.readUInt8(3)
      pending = pending.subarray(HEADER + pending.readUIntLE(0, 3))
      handle(sequence)
    }
  })
}

function send(socket: Socket, sequence: number, payload: Buffer): void {
  const header = Buffer.alloc(HEADER)
  header.writeUIntLE(payload.length, 0, 3)
  header.writeUInt8(sequence, 3)
  socket.write(Buffer.concat([header, payload]))
}

/** Protocol 10 with mysql_native_password. The capabilities are those of MySQL 8 without TLS. */
function greeting(): Buffer {
  return Buffer.concat([
    Buffer.from([10]),
    Buffer.from('8.0.40\0'),
    Buffer.from([1, 0, 0, 0]),
    Buffer.alloc(8, 'a'),
    Buffer.from([0, 0xff, 0xf7, 0xff, 2, 0, 0xff, 0x81, 21]),
    Buffer.alloc(10),
    Buffer.from('bbbbbbbbbbbb\0mysql_native_password\0'),
  ])
}

const ok = () => Buffer.from([0, 0, 0, 2, 0, 0, 0])

function failed([errno, sqlState, message]: MysqlError): Buffer {
  return Buffer.concat([
    Buffer.from([0xff, errno % 256, Math.floor(errno / 256)]),
    Buffer.from(`#${sqlState}${message}`),
  ])
}
