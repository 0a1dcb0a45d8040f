import { randomUUID } from 'node:crypto'
import type { Input, Operation } from '@redrive/api'
import type { Catalog } from '@redrive/catalog'

/** New data of one source for the examples. No other example uses what a function returns. */
export interface ExampleData {
  readonly catalog: Catalog
  readonly source: string
  /** Ids of users who may plan and approve runs. */
  readonly planner: string
  readonly approver: string
  deadLetter(): Promise<{ readonly id: string; readonly group: string }>
  setAside(): Promise<string>
  /** Returns the ETag of a group. */
  etagOf(group: string): Promise<string>
  /** Returns the id of a token that the caller may revoke. */
  token(): Promise<string>
  /** Returns the id of a session of another user. */
  session(): Promise<string>
}

type Examples = { readonly [K in Operation]: (data: ExampleData) => Promise<Input<K>> }

const DAY = 86_400_000
const byId = (id: string) => ({ params: { id } })
const byDeadLetter = async (data: ExampleData) => byId((await data.deadLetter()).id)
const byGroup = async (data: ExampleData) => byId((await data.deadLetter()).group)
const bySetAside = async (data: ExampleData) => ({ body: { ids: [await data.setAside()] } })
const bySource = async ({ source }: ExampleData) => ({ params: { source } })
const inSources = async ({ source }: ExampleData) => ({ query: { sources: [source] } })
const ids = async (data: ExampleData) => ({ ids: [(await data.deadLetter()).id] })
const recent = async ({ source }: ExampleData) => ({
  query: { filter: `source:${source} after:24h` },
})

async function planned(data: ExampleData) {
  return data.catalog.replays.plan({ selection: await ids(data), by: data.planner })
}

async function running(data: ExampleData) {
  const { id, hash } = await planned(data)
  await data.catalog.replays.approve(id, { hash, by: data.approver })
  return byId(id)
}

const byRun = async (data: ExampleData) => byId((await planned(data)).id)

/** Valid requests by operation, on data of one source. They succeed for a caller with the permission. */
export const EXAMPLES: Examples = {
  me: async () => ({}),
  overview: async () => ({}),
  listSources: async () => ({}),
  setSchema: async (data) => ({ ...(await bySource(data)), body: { type: 'none', schema: {} } }),
  setAutoReplay: async (data) => ({ ...(await bySource(data)), body: { allowed: false } }),
  listGroups: inSources,
  getGroup: byGroup,
  explainGroup: byGroup,
  async changeGroup(data) {
    const { group } = await data.deadLetter()
    return { ...byId(group), body: { state: 'resolved' }, ifMatch: await data.etagOf(group) }
  },
  async mergeGroups(data) {
    const [target, other] = [await data.deadLetter(), await data.deadLetter()]
    return { ...byId(target.group), body: { groups: [other.group], reason: 'same cause' } }
  },
  async unmergeGroup(data) {
    const [target, other] = [await data.deadLetter(), await data.deadLetter()]
    const merge = { groups: [other.group], by: data.planner, reason: 'same cause' }
    await data.catalog.regrouping.merge(target.group, merge)
    return { ...byId(other.group), body: { reason: 'two causes' } }
  },
  splitGroup: async (data) => ({
    ...(await byGroup(data)),
    body: { filter: 'declined', name: `declined ${randomUUID()}`, reason: 'two causes' },
  }),
  listMergedGroups: byGroup,
  listFingerprints: async () => ({}),
  listMasks: async () => ({}),
  previewFingerprints: async ({ source }) => ({
    body: {
      rules: [{ name: 'all', match: { text: 'declined' }, group: 'declined' }],
      sources: [source],
    },
  }),
  applyFingerprints: async ({ source }) => ({ body: { sources: [source], reason: 'new rules' } }),
  listGroupComments: byGroup,
  commentGroup: async (data) => ({ ...(await byGroup(data)), body: { text: 'hello' } }),
  listExpired: inSources,
  trend: async ({ source }) => ({
    query: { per: 'hour', after: Date.now() - DAY, before: Date.now(), sources: [source] },
  }),
  listDeadLetters: recent,
  exportDeadLetters: recent,
  getDeadLetter: byDeadLetter,
  getPayload: async (data) => ({ ...(await byDeadLetter(data)), query: { reason: 'ticket 7' } }),
  listCycles: byDeadLetter,
  listDeadLetterReplays: byDeadLetter,
  listDeadLetterComments: byDeadLetter,
  commentDeadLetter: async (data) => ({ ...(await byDeadLetter(data)), body: { text: 'hello' } }),
  async selectDeadLetters(data) {
    const { group } = await data.deadLetter()
    return { body: { action: 'discard', filter: `source:${data.source} group:${group}` } }
  },
  discard: async (data) => ({ body: await ids(data) }),
  restore: async (data) => ({ body: await ids(data) }),
  setOutcomes: async (data) => ({ body: { ...(await ids(data)), as: 'open' } }),
  listSetAside: inSources,
  getSetAside: async (data) => byId(await data.setAside()),
  getSetAsidePayload: async (data) => ({
    ...byId(await data.setAside()),
    query: { reason: 'ticket 7' },
  }),
  replaySetAside: bySetAside,
  async approveSetAside(data) {
    const { body } = await bySetAside(data)
    await data.catalog.setAside.requestReplay(body.ids, { by: data.planner })
    return { body }
  },
  discardSetAside: bySetAside,
  async reopenSetAside(data) {
    const { body } = await bySetAside(data)
    await data.catalog.setAside.discard(body.ids, { by: data.planner })
    return { body }
  },
  planReplay: async (data) => ({ body: { selection: await ids(data) } }),
  listReplays: async ({ source }) => ({ query: { source } }),
  getReplay: byRun,
  async watchReplay(data) {
    const { params } = await byRun(data)
    // The stream of an ended run ends.
    await data.catalog.replays.cancel(params.id, { by: data.planner })
    return { params }
  },
  listReplayItems: byRun,
  getReplayChange: byRun,
  async approveReplay(data) {
    const { id, hash } = await planned(data)
    return { ...byId(id), body: { hash } }
  },
  pauseReplay: running,
  async resumeReplay(data) {
    const { params } = await running(data)
    await data.catalog.replays.pause(params.id, { by: data.planner })
    return { params }
  },
  cancelReplay: byRun,
  acknowledgeRestore: async () => ({}),
  listTokens: async () => ({}),
  createToken: async ({ source }) => ({
    body: { name: 't', actions: ['view'], sources: [source], days: 1 },
  }),
  revokeToken: async (data) => byId(await data.token()),
  listSessions: async () => ({}),
  revokeSession: async (data) => byId(await data.session()),
  listAudit: async () => ({}),
}
