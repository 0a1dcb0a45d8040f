/** The payment service of the consumers in this folder. */
export class CardDeclined extends Error {}

const attempts = new Map()

export async function charge({ id, card }) {
  const attempt = (attempts.get(id) ?? 0) + 1
  attempts.set(id, attempt)
  if (card === 'declined') throw new CardDeclined(`the card of order ${id} was declined`)
  if (card === 'bank-away' && attempt === 1) {
    throw Object.assign(new Error('connect ECONNREFUSED bank:443'), { code: 'ECONNREFUSED' })
  }
  console.log(`charged ${id}`)
}
