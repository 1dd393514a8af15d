#!/bin/bash
# Proves fleetrun under a real Slurm: a controller and three nodes with private keys, sockets and
# folders, started for this and gone with it. Skips itself where that is not possible.
#
#   dev/test_slurm.sh
set -euo pipefail
. "$(dirname "${BASH_SOURCE[0]}")/cluster.sh"
enter_cluster slurm 3

start_slurm() {
  local dir=$PWD node
  mkdir state munge socket spool.node{0,1,2}
  chmod 755 . socket && chmod 700 munge
  head -c 1024 /dev/urandom >munge/key && chmod 600 munge/key
  munged --force --socket="$dir/socket/munge" --key-file="$dir/munge/key" --seed-file="$dir/munge/seed" \
    --pid-file="$dir/munge/pid" --log-file="$dir/munge/log" || return
  cat >slurm.conf <<CONF
ClusterName=argosy
SlurmctldHost=head(10.0.0.254)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket=$dir/socket/munge
StateSaveLocation=$dir/state
SlurmdSpoolDir=$dir/spool.%n
SlurmctldPidFile=$dir/slurmctld.pid
SlurmdPidFile=$dir/slurmd.%n.pid
SlurmctldLogFile=$dir/slurmctld.log
SlurmdLogFile=$dir/slurmd.%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0
KillWait=5
ReturnToService=2
MailProg=/bin/true
MpiDefault=none
NodeName=node[0-2] NodeAddr=10.0.0.[1-3] CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP
CONF
  echo "CgroupPlugin=cgroup/v1" >cgroup.conf  # which is not used, but has to be there
  export SLURM_CONF=$dir/slurm.conf
  on head slurmctld -D &
  for node in node0 node1 node2; do on $node slurmd -D -N $node & done
}

nodes_are_idle() { [[ $(on head sinfo -h -t idle -o %D) == 3 ]]; }

test=slurm
mkdir slurm && touch slurm/out
start_slurm >slurm/out 2>&1 || failed "Slurm does not start"
await nodes_are_idle
say "three nodes are up after $SECONDS s"

train=(argosy train -m config.yaml)
endless=("${train[@]}" -o 'runner.pipe_command=head -n 600; sleep 1000')

run every_task_a_process on head srun -N3 -n4 fleetrun --server_num=1 --worker_num=3 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect 'worker 2 has left' 'log/serverlog.0'
expect_times 'server 0 of 1 at 10.0.0.1:' 'log/serverlog.*' 1
expect_times '^launcher host=node[012][.][0123] ' 'log/status.*' 4
expect_nobody
passed

run a_launcher_on_each_node on head srun -N3 --ntasks-per-node=1 fleetrun --server_num=1 --worker_num=2 "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect_times 'server . of 3 at 10.0.0.[123]:' 'log/serverlog.*' 3
expect_times 'epoch: 0 done' 'log/workerlog.*' 6
expect_nobody
passed

run ranks on head srun -N2 -n4 fleetrun sh -c 'echo rank $PADDLE_TRAINER_ID of $PADDLE_TRAINERS_NUM on $(hostname)'
expect_code 0
for rank in 0 1 2 3; do expect "^rank $rank of 4 on node[012]\$"; done
expect_times '^rank . of 4' 'log/workerlog.*' 4
passed

cat >batch <<'SCRIPT'
#!/bin/sh
srun fleetrun --server_num=1 --worker_num=1 "$@"
SCRIPT
run batch_with_srun on head sbatch --wait -N2 -n2 --ntasks-per-node=1 -o batch.out ../batch "${train[@]}"
expect_code 0
expect_model 'log/workerlog.0'
expect 'epoch: 0 done' 'batch.out'
passed

sed -i 's/^srun //' batch
run batch_without_srun on head sbatch --wait -N2 -n2 -o batch.out ../batch "${train[@]}"
expect_code 2
expect 'has 2 nodes, but this launcher was not started by srun .*, expected srun fleetrun' 'batch.out'
passed

run a_worker_that_fails on head srun -N3 -n4 fleetrun --server_num=1 --worker_num=3 \
  sh -c 'if [ "$PADDLE_TRAINER_ID" = 1 ]; then echo the cause; exit 7; fi; sleep 1000'
expect_code 7
expect_times 'fleetrun: (elsewhere: )?worker 1 failed: exit status 7; log/workerlog.1 ends with:' 'out' 4
expect 'the cause'
expect_nobody
passed

for how in '' --signal=KILL; do
  run "cancelled$how" on head sbatch -N3 -n4 -o batch.out --wrap \
    "srun fleetrun --server_num=1 --worker_num=3 $(printf '%q ' "${endless[@]}")"
  expect_code 0
  await grep -q 'batch_id: 5,' "$test/log/workerlog.0"
  [[ -n $(alive) ]] || failed "nobody is there to be cancelled"
  on head scancel ${how:+$how --full} "$(grep -oE '[0-9]+$' "$test/out")"
  expect_nobody
  await nodes_are_idle
  passed
done

say "all passed in $SECONDS s"
