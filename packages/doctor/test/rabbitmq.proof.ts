import { services } from '@redrive/dev-support'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { diagnose, exitCodeOf, RABBITMQ_CHECKS, readRabbitmq, renderReport } from '../src/index.ts'
import { rabbitmqSuite } from './rabbitmq.suite.ts'
import { deploy, type RabbitmqWorld, rabbitmqWorld } from './rabbitmq.world.ts'
import { idsIn } from './ids.ts'

const CLUSTER = 'rabbitmq-cluster'

describe('RabbitMQ, three nodes', () => {
  rabbitmqSuite(CLUSTER, [])

  describe('the cluster itself', () => {
    let world: RabbitmqWorld
    const ids = async () => idsIn(RABBITMQ_CHECKS, await readRabbitmq(world))

    beforeAll(async () => {
      world = await rabbitmqWorld(CLUSTER)
      await deploy(world)
    })

    afterAll(async () => {
      await services('do', CLUSTER, 'memory_alarm', 'off', '2')
      await services('up', CLUSTER)
      await world.end()
    }, 240_000)

    it('has grade A, and a command would exit with 0', async () => {
      const { management, vhost } = world
      await expect.poll(ids, { timeout: 20_000 }).toEqual([])
      const report = await diagnose({ rabbitmq: { management, vhost } })
      expect(exitCodeOf(report)).toBe(0)
      expect(renderReport(report)).toBe(
        'RabbitMQ: no findings, grade A\n\nGrade A: survives the loss of a minority of nodes, and restarts of all nodes\n',
      )
    })

    it('finds a queue with one member', async () => {
      await world.channel.assertQueue('orders.dlq.quarantine.unknown', {
        durable: true,
        arguments: {
          'x-queue-type': 'quorum',
          'x-overflow': 'reject-publish',
          'x-delivery-limit': 1_000_000,
          'x-quorum-initial-group-size': 1,
        },
      })
      await expect.poll(ids, { timeout: 20_000 }).toEqual(['rabbitmq.quorum-members'])
      await world.channel.deleteQueue('orders.dlq.quarantine.unknown')
    })

    it('finds a node that is short of memory', async () => {
      await services('do', CLUSTER, 'memory_alarm', 'on', '2')
      await expect.poll(ids, { timeout: 30_000 }).toEqual(['rabbitmq.alarm'])
      await services('do', CLUSTER, 'memory_alarm', 'off', '2')
      await expect.poll(ids, { timeout: 30_000 }).toEqual([])
    }, 120_000)

    it('finds a node that is down, and the members that were on it', async () => {
      await services('do', CLUSTER, 'kill_node', '3')
      await expect
        .poll(ids, { timeout: 60_000 })
        .toEqual(['rabbitmq.members-offline', 'rabbitmq.node-down'])
      await services('do', CLUSTER, 'start_node', '3')
      await expect.poll(ids, { timeout: 60_000 }).toEqual([])
    }, 240_000)
  })
})
