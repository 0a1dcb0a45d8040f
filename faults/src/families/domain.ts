import type { Draw } from './draw.ts'
import { type Families, type Sample, thrown } from './family.ts'

function refused(draw: Draw, message: string, type = 'DomainError'): Sample {
  return thrown(draw, { type, message, own: ['accept', 'orders.ts'] })
}

function stripe(draw: Draw, message: string, decline_code: string): Sample {
  const fields = { code: 'card_declined', decline_code, requestId: `req_${draw.base62(14)}` }
  return thrown(draw, { type: 'StripeCardError', message, fields: { ...fields, statusCode: 402 } })
}

function money(draw: Draw): string {
  const [whole, cents] = [draw.int(1, 99), draw.int(10, 99)]
  return draw.pick([
    `${whole}.${cents} EUR`,
    `${whole},${draw.int(100, 999)}.${cents} USD`,
    `€${whole}.${cents}`,
    `$${whole}`,
    `${whole},${cents} €`,
    `CHF ${whole}.${cents}`,
  ])
}

function spent(draw: Draw): string {
  return draw.pick([
    `${draw.int(1, 999)}ms`,
    `${draw.int(1, 9)}.${draw.int(1, 9)}s`,
    `${draw.int(1, 59)} min`,
    `${draw.int(1, 9)}m${draw.int(1, 59)}s`,
  ])
}

const plural = (count: number, word: string) => `${count} ${word}${count === 1 ? '' : 's'}`

export const DOMAIN: Families = {
  'stripe: declined': (draw) => stripe(draw, 'Your card was declined.', 'generic_decline'),
  'stripe: no funds': (draw) =>
    stripe(draw, 'Your card has insufficient funds.', 'insufficient_funds'),
  'stripe: no such payment': (draw) =>
    thrown(draw, {
      type: 'StripeInvalidRequestError',
      message: `No such payment_intent: 'pi_${draw.base62(24)}'; a similar object exists in test mode, but a live mode key was used to make this request.`,
      fields: { code: 'resource_missing', statusCode: 404 },
    }),
  'order is not known': (draw) =>
    refused(
      draw,
      `Order ${draw.pick([`ORD-2026-${draw.int(1, 99_999)}`, `ORD-2025-${draw.int(1, 99_999)}`])} not found`,
    ),
  'customer is not known': (draw) => refused(draw, `Customer cus_${draw.base62(14)} not found`),
  'payment is not known': (draw) => refused(draw, `Payment ${draw.ulid()} not found`),
  'amount above the limit': (draw) =>
    refused(
      draw,
      `Amount ${money(draw)} exceeds the limit of ${money(draw)} for account ${draw.hex(7)}`,
    ),
  'code: E1001': (draw) => refused(draw, `E1001: booking ${draw.id()} refused by the ledger`),
  'code: E1002': (draw) => refused(draw, `E1002: booking ${draw.id()} refused by the ledger`),
  'ledger: error code 17': (draw) =>
    refused(draw, `ledger answered with error code 17 for entry ${draw.id()}`),
  'ledger: error code 23': (draw) =>
    refused(draw, `ledger answered with error code 23 for entry ${draw.id()}`),
  'german: stock': (draw) =>
    refused(
      draw,
      `Für Artikel „${draw.word()}“ sind nur ${draw.int(0, 9)} Stück verfügbar (benötigt: ${draw.int(10, 9_999)})`,
    ),
  'french: address': (draw) =>
    refused(draw, `L'adresse « ${draw.word()} » de la commande n° ${draw.id()} n'est pas valide`),
  'japanese: stock': (draw) =>
    refused(draw, `注文${draw.id()}の在庫が不足しています（残り${draw.int(0, 99)}個）`),
  'mail came back': (draw) =>
    refused(draw, `mail to ${draw.email()} came back on ${draw.at().toUTCString()}`),
  'articles are missing': (draw) =>
    refused(draw, `unknown articles: ${draw.several(1, 6, () => draw.id()).join(', ')}`),
  'lines are missing': (draw) => {
    const count = draw.int(1, 4)
    return refused(
      draw,
      `${plural(count, 'line')} of shipment ${draw.uuid()} missing after ${plural(draw.int(1, 3), 'scan')}`,
    )
  },
  'lock is taken': (draw) =>
    refused(draw, `cart ${draw.hex(24)} is locked by ${draw.pod('checkout')} since ${spent(draw)}`),
  'file: archive is full': (draw) =>
    refused(
      draw,
      `archive ${draw.int(1, 9)}.${draw.int(1, 99)} ${draw.pick(['MB', 'GB', 'GiB'])} of ${draw.int(10, 90)} GB used on ${draw.ip()}`,
    ),
  'long: merge of two accounts': (draw) =>
    refused(
      draw,
      `cannot merge accounts ${draw.several(2, 6, draw.uuid).join(' and ')} because at least one of them has open invoices, and invoices cannot move between accounts that belong to different legal entities; close the invoices first (batch ${draw.id()}, worker ${draw.pod('accounts')}, started ${draw.at().toISOString()})`,
    ),
  'long: with a cause': (draw) => {
    const cause = new Error(`no tariff for ${draw.uuid()}`)
    const message = `the invoice run of tenant ${draw.uuid()} for period ${draw.at().toISOString()} was stopped at page ${draw.id()} by worker ${draw.pod('invoices')} after it had written ${plural(draw.int(1, 90_000), 'invoice')} to bucket invoices-${draw.hex(12)}, because the price of a position could not be found in any list`
    return thrown(draw, { type: 'InvoiceRunError', message, cause, own: ['invoice', 'run.ts'] })
  },
}
