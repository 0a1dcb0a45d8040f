import { z } from 'zod'
import { timestamp } from './fields.ts'

const comment = z
  .object({ id: z.string(), author: z.string(), text: z.string(), writtenAt: timestamp })
  .meta({ id: 'Comment' })
export const comments = z.object({ comments: z.array(comment) })
