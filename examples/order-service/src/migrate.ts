import { readConfig } from './config.ts'
import { openPool, prepareDatabase } from './database.ts'

const pool = openPool(readConfig(process.env).databaseUrl, 1)
await prepareDatabase(pool)
await pool.end()
console.log('The tables exist.')
