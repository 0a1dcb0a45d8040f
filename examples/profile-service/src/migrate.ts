import { Pool } from 'pg'
import { readConfig } from './config.ts'
import { Profiles } from './profiles.ts'

const pool = new Pool({ connectionString: readConfig(process.env).postgres.url })
await new Profiles(pool).createTable()
await pool.end()
console.log('The table "profiles" exists.')
