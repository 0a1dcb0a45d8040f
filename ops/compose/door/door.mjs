// Forwards port 8081 to the loopback address of the server, in the same network namespace.
import { connect, createServer } from 'node:net'

const server = createServer((from) => {
  const to = connect({ host: '127.0.0.1', port: 8080 })
  for (const socket of [from, to]) socket.on('error', () => [from, to].map((one) => one.destroy()))
  from.pipe(to).pipe(from)
}).listen(8081, '0.0.0.0')

process.once('SIGTERM', () => server.close(() => process.exit(0)))
