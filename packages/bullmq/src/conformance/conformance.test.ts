// The suites that every broker must pass, on BullMQ.
import { brokerConformance, brokerModel } from '@bullpen/testing'
import { inject } from 'vitest'
import { keepRenewalThread, openBullmq } from './backend.fixture.ts'

keepRenewalThread(inject('redisUrl'))
brokerConformance('BullMQ', openBullmq)
brokerModel('BullMQ', openBullmq, { time: 'real', seeds: { small: 30, full: 1_000 }, atOnce: 10 })
