/** MySQL. The errors have the numbers and SQLSTATEs of a real server. */
import { createConnection, createPool } from 'mysql2/promise'
import { listenAsMysql, type MysqlAnswers, type MysqlError } from '../servers/mysql.ts'
import {
  MISSING_HOST,
  PATIENCE_MS,
  type Provocations,
  type Provoke,
  type Site,
  WAIT_MS,
} from '../site.ts'

const LOGIN = { user: 'app', password: 'wrong' }

async function run(
  host: string,
  port: number,
  timeout?: number,
  connectTimeout = PATIENCE_MS,
): Promise<unknown> {
  const connection = await createConnection({ ...LOGIN, host, port, connectTimeout })
  connection.on('error', () => undefined)
  try {
    return await connection.query({ sql: 'select 1', ...(timeout && { timeout }) })
  } finally {
    connection.destroy()
  }
}

const against =
  (answers: MysqlAnswers, timeout?: number): Provoke =>
  async (site) =>
    run('127.0.0.1', await site.start(listenAsMysql(answers)), timeout)

const login = (...error: MysqlError) => against({ login: error })
const query = (...error: MysqlError) => against({ query: error })

/** Requests a second connection from a pool that may open one. */
async function exhaustPool(site: Site): Promise<unknown> {
  const port = await site.start(listenAsMysql({}))
  const pool = createPool({
    ...LOGIN,
    host: '127.0.0.1',
    port,
    connectionLimit: 1,
    waitForConnections: false,
  })
  const first = await pool.getConnection()
  try {
    return await pool.getConnection()
  } finally {
    first.destroy()
    await pool.end()
  }
}

async function queryAfterEnd(site: Site): Promise<unknown> {
  const port = await site.start(listenAsMysql({}))
  const pool = createPool({ ...LOGIN, host: '127.0.0.1', port })
  await pool.end()
  return pool.query('select 1')
}

async function queryAfterClose(site: Site): Promise<unknown> {
  const port = await site.start(listenAsMysql({ query: 'close' }))
  const connection = await createConnection({ ...LOGIN, host: '127.0.0.1', port })
  connection.on('error', () => undefined)
  await connection.query('select 1').catch(() => undefined)
  return connection.query('select 1')
}

export const MYSQL_CLIENTS: Provocations = {
  mysql2: {
    'closed port': async (site: Site) => run('127.0.0.1', await site.closedPort()),
    'host does not exist': () => run(MISSING_HOST, 3306),
    'no response': async (site: Site) =>
      run('127.0.0.1', await site.silentPort(), undefined, WAIT_MS),
    'password rejected': login(1045, '28000', "Access denied for user 'app'@'localhost'"),
    'too many connections': login(1040, '08004', 'Too many connections'),
    'server shuts down': query(1053, '08S01', 'Server shutdown in progress'),
    'connection lost during a query': against({ query: 'close' }),
    'query on a lost connection': queryAfterClose,
    'no response to a query': against({ query: 'silence' }, WAIT_MS),
    'pool exhausted': exhaustPool,
    'pool closed': queryAfterEnd,
    deadlock: query(1213, '40001', 'Deadlock found when trying to get lock'),
    'lock wait timeout': query(1205, 'HY000', 'Lock wait timeout exceeded'),
    'statement timeout': query(3024, 'HY000', 'Query execution was interrupted'),
    'server is read-only': query(1290, 'HY000', 'running with the --read-only option'),
    'killed by an administrator': query(1317, '70100', 'Query execution was interrupted'),
    'disk full': query(1021, 'HY000', 'Disk full'),
    'duplicate key': query(1062, '23000', "Duplicate entry '1' for key 'PRIMARY'"),
    'check constraint': query(3819, 'HY000', "Check constraint 'positive' is violated."),
    'value too long': query(1406, '22001', "Data too long for column 'name'"),
    'wrong integer': query(1366, 'HY000', "Incorrect integer value: 'x' for column 'amount'"),
    'table does not exist': query(1146, '42S02', "Table 'app.orders' doesn't exist"),
    'syntax error': query(1064, '42000', 'You have an error in your SQL syntax'),
  },
}
