import { it } from 'vitest'
import { exerciseExample } from './example.ts'

it('runs the example without a broker, and stops it on SIGTERM', () => exerciseExample({}))
