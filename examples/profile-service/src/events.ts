import { type Decode, decodeByContentType } from '@redrive/runtime'
import { z } from 'zod'

const Subject = z.string().min(1).max(255)
const Moment = z.iso.datetime({ offset: true })

const Profile = z.object({
  subject: Subject,
  email: z.email().max(320),
  firstName: z.string().min(1).max(200),
  lastName: z.string().min(1).max(200),
  occurredAt: Moment,
})

/** Events of the identity service about its users. */
export const UserEvent = z.discriminatedUnion('type', [
  z.object({ type: z.literal('user.registered'), data: Profile }),
  z.object({ type: z.literal('user.updated'), data: Profile }),
  z.object({
    type: z.literal('user.deleted'),
    data: z.object({ subject: Subject, occurredAt: Moment }),
  }),
])
export type UserEvent = z.infer<typeof UserEvent>

/** Combines the type, a property of the AMQP message, with the body; the schema reads both. */
export const decodeUserEvent: Decode = (bytes, delivery) => ({
  type: delivery.type,
  data: decodeByContentType(bytes, delivery),
})
